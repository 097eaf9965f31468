import { shownSigningKeys } from '../core/control/access/signing-keys.ts'
import { type Check, type DoctorContext, type Finding, failure, messageOf, ok, warning } from './check.ts'

/** The way from outside to `postern api`: name, front end, and who answers behind it. */
export const publicChecks: Check[] = [
  { name: 'public-url', look: publicUrl },
  {
    name: 'public-url.proxies',
    look: async ({ settings: { publicUrl, trustedProxies } }) => [proxies(publicUrl, trustedProxies)],
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
    // Somebody else's page.
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
        `Nobody answers at ${origin}: ${messageOf(error)}.`,
        'Start `postern api`, look that the name leads to the front end, that its certificate holds, and that it passes ' +
          'requests on to POSTERN_HTTP_HOST and POSTERN_HTTP_PORT.',
      ),
    ]
  }
  if (health.status !== 200 || (health.body as { status?: unknown }).status !== 'ok') {
    return [
      failure(
        `At ${origin} somebody else answers: /healthz has the status ${health.status}.`,
        'Let the front end pass every path on to `postern api`, or set POSTERN_PUBLIC_URL to where it does.',
      ),
    ]
  }
  if (missing.tables) return [ok(`Postern answers at ${origin}.`)]
  const shown = await ask(new URL('/v1/auth/jwks.json', origin))
  const { keys = [] } = shown.body as { keys?: { x?: string }[] }
  const own = await shownSigningKeys(identity)
  if (own.every((key) => keys.some(({ x }) => x === key))) return [ok(`This Postern answers at ${origin}.`)]
  return [
    failure(
      `At ${origin} another Postern answers: its keys are not those of this database.`,
      'Let the front end lead to the processes that use this database, or correct POSTERN_DATABASE_URL here.',
    ),
  ]
}

function proxies({ protocol, origin }: URL, trusted: readonly string[]): Finding {
  const everybody = trusted.filter((network) => /\/0$/.test(network))
  if (everybody.length > 0) {
    return failure(
      `POSTERN_TRUSTED_PROXIES believes everybody (${everybody.join(', ')}): any caller can give a false address.`,
      'List the addresses of your own front ends alone.',
    )
  }
  // Postern speaks no TLS over HTTP itself: somebody stands in front.
  if (protocol === 'https:' && trusted.length === 0) {
    return warning(
      `${origin} is served by a front end, and POSTERN_TRUSTED_PROXIES is empty: all callers seem to come from it, and share its limits.`,
      'Set POSTERN_TRUSTED_PROXIES to the address from which the front end reaches `postern api`.',
    )
  }
  return ok('Addresses of callers are taken from nobody but the front ends listed.')
}
