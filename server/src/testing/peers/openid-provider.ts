import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import {
  type CryptoKey,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
} from 'jose'
import Provider, { type JWK } from 'oidc-provider'
import { Agent, request } from 'undici'
import { cleanUp } from '../harness/cleanup.ts'
import { patienceMs } from '../harness/waiting.ts'
import { makeCertificate } from './certificate.ts'

/** The person at the issuer's sign-in page, who signs in there at once. */
export interface IssuerPerson {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
  acr?: string
  amr?: string[]
  /** When the person authenticated, in seconds. Now, if absent. */
  ts?: number
}

export interface TokenParts {
  header: { alg: string; kid?: string }
  claims: JWTPayload
}

/** A real OpenID Connect issuer with keys of its own. */
export interface OpenidProvider {
  url: string
  /** The entry in POSTERN_SIGN_IN_ISSUERS. */
  configuration: Record<string, unknown>
  /** Null: the person does not want to sign in. */
  person: IssuerPerson | null
  /** Replaces the tokens that the issuer sends, as if the issuer or the way to it were not trustworthy. */
  forge: ((token: TokenParts) => Promise<string> | string) | undefined
  /** Signs with the issuer's key. */
  sign(token: TokenParts): Promise<string>
  /** Changes the metadata. */
  metadata: Record<string, unknown>
  /** The paths that were requested, in order. */
  paths: string[]
  /** Registers the installations with these origins as clients. */
  register(origins: string[]): void
  /** Follows the redirects as a new browser does, up to the callback, and returns its address. */
  visit(url: string): Promise<string>
}

const clientSecret = 'a-client-secret-of-the-tests'

export async function startOpenidProvider(id: string): Promise<OpenidProvider> {
  const { files, cert, key } = makeCertificate()
  const pair = await generateKeyPair('RS256', { extractable: true })
  const kid = 'of-the-tests'
  const signingKey: JWK = { ...((await exportJWK(pair.privateKey)) as JWK), kid, use: 'sig', alg: 'RS256' }

  let answer: ReturnType<Provider['callback']> | undefined
  const server = createServer({ cert, key }, (incoming, outgoing) => void answer?.(incoming, outgoing))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`

  const redirectUri = (origin: string) => `${origin}/v1/auth/issuers/${id}/callback`
  const register = (origins: string[]) => {
    const provider = newProvider(url, signingKey, origins.map(redirectUri), () => peer.person)
    provider.use(async (context, next) => {
      peer.paths.push(context.path)
      if (context.path.startsWith('/interaction/')) {
        context.respond = false
        return finishInteraction(provider, context, peer.person)
      }
      await next()
      const body = context.body as Record<string, unknown> | undefined
      if (context.path === '/.well-known/openid-configuration') context.body = { ...body, ...peer.metadata }
      const token = body?.['id_token']
      if (context.path === '/token' && peer.forge && typeof token === 'string') {
        const header = decodeProtectedHeader(token) as TokenParts['header']
        context.body = { ...body, id_token: await peer.forge({ header, claims: decodeJwt(token) }) }
      }
    })
    answer = provider.callback()
  }

  const agent = new Agent({ connect: { ca: cert.toString() }, headersTimeout: patienceMs })
  cleanUp(() => agent.destroy())
  const peer: OpenidProvider = {
    url,
    configuration: {
      ...{ id, label: id, issuer: url, client_id: 'postern', client_secret: clientSecret },
      ...{ private_networks: ['127.0.0.0/8'], ca_file: files.certificate },
    },
    person: null,
    forge: undefined,
    sign: ({ header, claims }) => signWith(pair.privateKey, { header, claims }),
    metadata: {},
    register,
    paths: [],
    visit: (start) => visit(agent, start, url),
  }
  return peer
}

export const signWith = (key: CryptoKey, { header, claims }: TokenParts): Promise<string> =>
  new SignJWT(claims).setProtectedHeader(header).sign(key)

function newProvider(
  url: string,
  signingKey: JWK,
  redirectUris: string[],
  personNow: () => IssuerPerson | null,
): Provider {
  /** By subject, as they were when they signed in. */
  const people = new Map<string, IssuerPerson>()
  return new Provider(url, {
    clients: [
      {
        ...{ client_id: 'postern', client_secret: clientSecret, redirect_uris: redirectUris },
        ...{ response_types: ['code'], grant_types: ['authorization_code'] },
      },
    ],
    jwks: { keys: [signingKey] },
    cookies: { keys: [randomUUID()] },
    acrValues: ['phr', 'pwd'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    ttl: {
      Session: 3600,
      Interaction: 600,
      Grant: 3600,
      AccessToken: 600,
      IdToken: 600,
      AuthorizationCode: 60,
    },
    findAccount: (_context, sub) => {
      const person = personNow()
      if (person?.sub === sub) people.set(sub, person)
      const { acr: _acr, amr: _amr, ts: _ts, ...claims } = people.get(sub) ?? { sub }
      return { accountId: sub, claims: () => ({ ...claims }) }
    },
    async loadExistingGrant({ oidc }) {
      const { client, session } = oidc
      if (!client || !session?.accountId) return undefined
      const grant = new oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
}

async function finishInteraction(
  provider: Provider,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  person: IssuerPerson | null,
): Promise<void> {
  const { sub, acr, amr, ts } = person ?? {}
  await provider.interactionFinished(
    req,
    res,
    sub === undefined
      ? { error: 'access_denied', error_description: 'The person cancelled.' }
      : { login: { accountId: sub, ...(acr && { acr }), ...(amr && { amr }), ...(ts && { ts }) } },
    { mergeWithLastSubmission: false },
  )
}

async function visit(agent: Agent, start: string, issuer: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = start
  while (url.startsWith(`${issuer}/`)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const { statusCode, headers, body } = await request(url, { dispatcher: agent, headers: { cookie } })
    const text = await body.text()
    for (const line of [headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = headers['location']
    if (typeof location !== 'string') throw new Error(`the issuer returned ${statusCode}: ${text}`)
    url = new URL(location, url).href
  }
  return url
}
