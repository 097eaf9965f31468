import { shownSigningKeys } from '../core/control/access/signing-keys.ts'
import { type Check, type DoctorContext, type Finding, failure, messageOf, ok, warning } from './check.ts'

/** Checks the public URL: that this installation responds there, and which proxies are trusted. */
export const publicChecks: Check[] = [
  { name: 'public-url', run: publicUrl },
  {
    name: 'public-url.proxies',
    run: async ({ settings: { publicUrl, trustedProxies } }) => [proxies(publicUrl, trustedProxies)],
  },
]

interface Answer {
  status: number
  body: unknown
}

const answerMs = 8_000

async function ask(url: URL): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(answerMs) })
  const text = await response.text()
  let body: unknown = text
  try {
    body = JSON.parse(text)
  } catch {
    // Not JSON: a page from another server.
  }
  return { status: response.status, body }
}

async function publicUrl({ settings, identity, missing }: DoctorContext): Promise<Finding[]> {
  const { origin } = settings.publicUrl
  let health: Answer
  try {
    health = await ask(new URL('/healthz', origin))
  } catch (error) {
    return [
      failure(
        `No response from ${origin}: ${messageOf(error)}.`,
        'Start `postern api`. Check that the name resolves to the reverse proxy, that its certificate is valid, and that it ' +
          'forwards requests to POSTERN_HTTP_HOST and POSTERN_HTTP_PORT.',
      ),
    ]
  }
  if (health.status !== 200 || (health.body as { status?: unknown }).status !== 'ok') {
    return [
      failure(
        `${origin} is not served by Postern: /healthz returned ${health.status}.`,
        'Configure the reverse proxy to forward every path to `postern api`, or correct POSTERN_PUBLIC_URL.',
      ),
    ]
  }
  if (missing.tables) return [ok(`Postern responds at ${origin}.`)]
  const shown = await ask(new URL('/v1/auth/jwks.json', origin))
  const { keys = [] } = shown.body as { keys?: { x?: string }[] }
  const own = await shownSigningKeys(identity)
  if (own.every((key) => keys.some(({ x }) => x === key)))
    return [ok(`This installation responds at ${origin}.`)]
  return [
    failure(
      `${origin} is served by another Postern installation: its keys are not in this database.`,
      'Point the reverse proxy at the processes that use this database, or correct POSTERN_DATABASE_URL here.',
    ),
  ]
}

function proxies({ protocol, origin }: URL, trusted: readonly string[]): Finding {
  const everyone = trusted.filter((network) => /\/0$/.test(network))
  if (everyone.length > 0) {
    return failure(
      `POSTERN_TRUSTED_PROXIES trusts every address (${everyone.join(', ')}): any caller can forge its address.`,
      'List only the addresses of your own reverse proxies.',
    )
  }
  // Postern itself serves no HTTPS, so there is a reverse proxy.
  if (protocol === 'https:' && trusted.length === 0) {
    return warning(
      `${origin} is served through a reverse proxy, and POSTERN_TRUSTED_PROXIES is empty: all callers appear to have its address and share its rate limits.`,
      'Set POSTERN_TRUSTED_PROXIES to the address from which the reverse proxy connects to `postern api`.',
    )
  }
  return ok('X-Forwarded-For is accepted from the listed reverse proxies only.')
}
