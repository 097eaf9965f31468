import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Resolver } from '../../platform/net/dns.ts'
import { cleanUp } from '../harness/cleanup.ts'
import { type OutboundMail, readOutbound, type SendEmailBody } from './ses-outbound.ts'
import { isSignedWith, scopeOf } from './sigv4.ts'

/**
 * The identity and sending parts of Amazon SES (API version 2) on a free loopback port, with its documented
 * requests, responses and errors, separate state per account and region, and real signatures. Tests inject faults.
 * It verifies a name, or checks its DKIM records, only when a test requests it.
 */
export interface SesPeer {
  url: string
  location: SesLocation
  /** The settings for using this peer. In a test file, the credentials are in `process.env` from the start. */
  settings: Record<string, string>
  /** Every correctly signed request, in order of arrival. */
  calls: SesCall[]
  /** Calls that took effect, in order. Creating an existing identity has no effect. */
  deeds: SesDeed[]
  /** Every accepted message, in order, even if the response was lost. */
  mails: OutboundMail[]
  hooks: SesHooks
  /** Injects a fault for the next requests of that kind, including retries by the SDK. Faults apply in order. */
  failNext(kind: SesCall['kind'], fault: SesFault, times?: number): void
  has(domain: string, location?: SesLocation): boolean
  tokens(domain: string, location?: SesLocation): string[]
  /** Sets the result that SES reports for its last DKIM check. */
  setDkim(domain: string, status: DkimStatus, location?: SesLocation): void
  /** Checks the DKIM records as SES does. Returns true if all exist. */
  checkDns(domain: string, dns: Pick<Resolver, 'cname'>, location?: SesLocation): Promise<boolean>
  /** An identity created outside Postern, with its own key. */
  makeByHand(domain: string): void
  close(): Promise<void>
}

export interface SesLocation {
  account: string
  region: string
}

export interface SesCall extends SesLocation {
  kind: 'create' | 'get' | 'delete' | 'send'
  /** The identity's name; for a message, the sender's domain. */
  domain: string
  body: { Tags?: object[] } | null
  mail?: OutboundMail
}

export interface SesDeed extends SesLocation {
  kind: 'create' | 'delete'
  domain: string
  at: Date
}

/** Awaited by the peer, so that a test can kill a process at exactly that moment. */
export interface SesHooks {
  /** The request has arrived. Nothing has changed yet. */
  onRequest?: (call: SesCall) => unknown
  /** The request took effect. No response was sent yet. */
  onEffect?: (call: SesCall) => unknown
  /** The response was sent. */
  onAnswer?: (call: SesCall) => unknown
}

export type DkimStatus = 'PENDING' | 'SUCCESS' | 'FAILED' | 'TEMPORARY_FAILURE'

export type SesFault =
  | keyof typeof refusals
  | 'lose_request'
  | 'lose_answer'
  /** The request takes effect, but the response is an error. */
  | 'fail_afterwards'
  | { delayMs: number }
  /** The request takes effect, but the response is late. */
  | { answerDelayMs: number }

const refusals = {
  too_many_requests: [429, 'TooManyRequestsException', 'Rate exceeded'],
  throttling: [400, 'ThrottlingException', 'Rate exceeded'],
  internal: [500, 'InternalFailure', 'Internal failure'],
  unavailable: [503, 'ServiceUnavailable', 'Service unavailable'],
  concurrent_modification: [500, 'ConcurrentModificationException', 'Another operation is in progress'],
  bad_request: [400, 'BadRequestException', 'Invalid domain name'],
  limit_exceeded: [400, 'LimitExceededException', 'Limit of identities exceeded'],
  access_denied: [403, 'AccessDeniedException', 'User: arn:aws:iam::111122223333:user/x is not authorized'],
  sending_paused: [400, 'SendingPausedException', 'Email sending is disabled for this account.'],
  account_suspended: [400, 'AccountSuspendedException', 'This account may no longer send.'],
  day_quota: [400, 'LimitExceededException', 'Daily message quota exceeded.'],
  message_rejected: [400, 'MessageRejected', 'Illegal filename'],
  no_such_path: [404, '', ''],
  nameless: [400, '', ''],
  wrong_clock: [400, 'RequestExpired', 'Request has expired'],
  from_unverified: [400, 'MailFromDomainNotVerifiedException', 'The MAIL FROM domain is not verified'],
  expired_token: [403, 'ExpiredTokenException', 'The security token included in the request is expired'],
} as const

type Refusal = readonly [status: number, name: string, message: string]

const isRefusal = (result: object): result is Refusal => Array.isArray(result)

interface Identity {
  tokens: string[]
  dkim: DkimStatus
  origin: 'AWS_SES' | 'EXTERNAL'
  tags: object[]
  createdAt: Date
}

/** Derived from the account number, so that every peer accepts every account. */
export function sesCredentials(account: string): { accessKeyId: string; secretAccessKey: string } {
  return { accessKeyId: `AKIATEST${account}`, secretAccessKey: `canary-aws-secret-${account}` }
}

/** Closed after the file's tests. */
export async function startSesPeer(): Promise<SesPeer> {
  const peer = await openSesPeer()
  const { accessKeyId, secretAccessKey } = sesCredentials(peer.location.account)
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey })
  cleanUp(() => peer.close())
  return peer
}

/** The caller must close it. */
export async function openSesPeer(): Promise<SesPeer> {
  const location = { account: '111122223333', region: 'eu-west-1' }
  const peer = new Peer(location)
  const server = createServer((request, response) => {
    peer.answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  peer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  peer.settings = {
    POSTERN_SES_REGION: location.region,
    POSTERN_SES_ACCOUNT_ID: location.account,
    POSTERN_SES_ENDPOINT: peer.url,
  }
  peer.close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return peer
}

class Peer implements SesPeer {
  url = ''
  settings: Record<string, string> = {}
  close: () => Promise<void> = async () => {}
  readonly location: SesLocation
  readonly calls: SesCall[] = []
  readonly deeds: SesDeed[] = []
  readonly mails: OutboundMail[] = []
  readonly hooks: SesHooks = {}
  readonly #faults: { kind: SesCall['kind']; fault: SesFault }[] = []
  readonly #identities = new Map<string, Identity>()

  constructor(location: SesLocation) {
    this.location = location
  }

  failNext(kind: SesCall['kind'], fault: SesFault, times = 1): void {
    for (let i = 0; i < times; i++) this.#faults.push({ kind, fault })
  }

  has(domain: string, location = this.location): boolean {
    return this.#identities.has(keyOf(domain, location))
  }

  tokens(domain: string, location = this.location): string[] {
    return this.#known(domain, location).tokens
  }

  setDkim(domain: string, status: DkimStatus, location = this.location): void {
    this.#known(domain, location).dkim = status
  }

  async checkDns(domain: string, dns: Pick<Resolver, 'cname'>, location = this.location): Promise<boolean> {
    const identity = this.#known(domain, location)
    const found = await Promise.all(
      identity.tokens.map(async (token) => {
        const lookup = await dns.cname(`${token}._domainkey.${domain}`)
        return lookup.kind === 'found' && lookup.values.includes(`${token}.${hostedZone}`)
      }),
    )
    if (found.every(Boolean)) identity.dkim = 'SUCCESS'
    return identity.dkim === 'SUCCESS'
  }

  makeByHand(domain: string): void {
    const identity = { ...newIdentity(), tokens: ['selector1'], origin: 'EXTERNAL' as const }
    this.#identities.set(keyOf(domain, this.location), identity)
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request)
    const call = understand(request, body)
    if (isRefusal(call)) return refuse(response, call)
    this.calls.push(call)
    const fault = this.#takeFault(call.kind)
    await this.hooks.onRequest?.(call)
    if (fault === 'lose_request') return void request.socket.destroy()
    if (typeof fault === 'object' && 'delayMs' in fault) await sleep(fault.delayMs)
    if (typeof fault === 'string' && fault in refusals) {
      refuse(response, refusals[fault as keyof typeof refusals])
    } else {
      const result = this.#act(call)
      if (!isRefusal(result)) await this.hooks.onEffect?.(call)
      if (fault === 'lose_answer') return void request.socket.destroy()
      if (typeof fault === 'object' && 'answerDelayMs' in fault) await sleep(fault.answerDelayMs)
      if (fault === 'fail_afterwards') refuse(response, refusals.internal)
      else if (isRefusal(result)) refuse(response, result)
      else send(response, 200, result)
    }
    await this.hooks.onAnswer?.(call)
  }

  #takeFault(kind: SesCall['kind']): SesFault | undefined {
    const index = this.#faults.findIndex((entry) => entry.kind === kind)
    return index === -1 ? undefined : this.#faults.splice(index, 1)[0]?.fault
  }

  #act(call: SesCall): object | Refusal {
    const { kind, domain, mail } = call
    if (mail) {
      if (!this.#isVerified(call)) {
        return [400, 'MessageRejected', `Email address is not verified: ${domain} in ${call.region}`]
      }
      this.mails.push(mail)
      return { MessageId: mail.sesId }
    }
    const key = keyOf(domain, call)
    const identity = this.#identities.get(key)
    if (kind === 'create') {
      if (identity) return [400, 'AlreadyExistsException', `Email identity ${domain} already exist.`]
      const created = { ...newIdentity(), tags: call.body?.Tags ?? [] }
      this.#identities.set(key, created)
      this.#note(call, kind)
      return { IdentityType: 'DOMAIN', ...this.#statusOf(call, created) }
    }
    if (!identity) return [404, 'NotFoundException', `Email identity ${domain} does not exist.`]
    if (kind === 'delete') {
      this.#identities.delete(key)
      this.#note(call, kind)
      return {}
    }
    return {
      IdentityType: 'DOMAIN',
      FeedbackForwardingStatus: true,
      ...this.#statusOf(call, identity),
      MailFromAttributes: { BehaviorOnMxFailure: 'USE_DEFAULT_VALUE' },
      Policies: {},
      Tags: identity.tags,
      VerificationStatus: this.#isVerified(call) ? 'SUCCESS' : identity.dkim,
      VerificationInfo: identity.dkim === 'SUCCESS' ? {} : { ErrorType: 'HOST_NOT_FOUND' },
    }
  }

  #statusOf(call: SesCall, { dkim, tokens, origin, createdAt }: Identity): object {
    return {
      VerifiedForSendingStatus: this.#isVerified(call),
      DkimAttributes: {
        SigningEnabled: true,
        Status: dkim,
        Tokens: tokens,
        SigningAttributesOrigin: origin,
        ...(origin === 'AWS_SES' ? { SigningHostedZone: hostedZone } : {}),
        NextSigningKeyLength: 'RSA_2048_BIT',
        CurrentSigningKeyLength: 'RSA_2048_BIT',
        LastKeyGenerationTimestamp: createdAt.getTime() / 1000,
      },
    }
  }

  /** A subdomain of a verified name is verified, regardless of who registered either. */
  #isVerified({ domain, account, region }: SesCall): boolean {
    const labels = domain.split('.')
    return labels.some((_, index) => {
      const parent = labels.slice(index).join('.')
      return this.#identities.get(keyOf(parent, { account, region }))?.dkim === 'SUCCESS'
    })
  }

  #note({ domain, account, region }: SesCall, kind: SesDeed['kind']): void {
    this.deeds.push({ kind, domain, account, region, at: new Date() })
  }

  #known(domain: string, location: SesLocation): Identity {
    const identity = this.#identities.get(keyOf(domain, location))
    if (!identity) throw new Error(`SES does not have ${domain} in ${location.account}, ${location.region}`)
    return identity
  }
}

const hostedZone = 'dkim.amazonses.com'

const keyOf = (domain: string, { account, region }: SesLocation): string => `${account} ${region} ${domain}`

function newIdentity(): Identity {
  const token = () => randomBytes(16).toString('hex')
  return {
    tokens: [token(), token(), token()],
    dkim: 'PENDING',
    origin: 'AWS_SES',
    tags: [],
    createdAt: new Date(),
  }
}

/** The parsed call, or the error. */
function understand(request: IncomingMessage, body: Buffer): SesCall | Refusal {
  const { method = '', url: path = '', headers } = request
  const scope = scopeOf(headers)
  if (!scope) return [403, 'MissingAuthenticationTokenException', 'Missing Authentication Token']
  const [, account] = /^AKIATEST(\d{12})$/.exec(scope.accessKeyId) ?? []
  if (account === undefined) {
    return [403, 'UnrecognizedClientException', 'The security token included in the request is invalid.']
  }
  const { secretAccessKey } = sesCredentials(account)
  if (scope.service !== 'ses' || !isSignedWith(secretAccessKey, scope, { method, path, headers, body })) {
    // SES repeats the string to sign, including all headers.
    const repeated = JSON.stringify(headers)
    return [
      403,
      'InvalidSignatureException',
      `The request signature we calculated does not match. ${repeated}`,
    ]
  }
  const [, name] = /^\/v2\/email\/identities(?:\/([^/?]+))?$/.exec(path) ?? []
  const location = { account, region: scope.region }
  if (method === 'POST' && path === '/v2/email/outbound-emails') {
    const mail = readOutbound(JSON.parse(body.toString()) as SendEmailBody)
    return 'fault' in mail
      ? mail.fault
      : { kind: 'send', domain: mail.fromDomain, body: null, mail, ...location }
  }
  if (method === 'GET' && name) return { kind: 'get', domain: domainOf(name), body: null, ...location }
  if (method === 'DELETE' && name) return { kind: 'delete', domain: domainOf(name), body: null, ...location }
  if (method === 'POST' && path === '/v2/email/identities') {
    const input = JSON.parse(body.toString()) as { EmailIdentity?: unknown; Tags?: object[] }
    if (typeof input.EmailIdentity !== 'string' || !/^[\w-]+(\.[\w-]+)+$/.test(input.EmailIdentity)) {
      return [400, 'BadRequestException', `Invalid domain name ${String(input.EmailIdentity)}.`]
    }
    return { kind: 'create', domain: input.EmailIdentity.toLowerCase(), body: input, ...location }
  }
  return [404, 'UnknownOperationException', `${method} ${path} is not supported by this peer`]
}

const domainOf = (segment: string): string => decodeURIComponent(segment).toLowerCase()

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function refuse(response: ServerResponse, [status, name, message]: Refusal): void {
  send(response, status, { message }, { 'x-amzn-ErrorType': name })
}

function send(response: ServerResponse, status: number, body: object, headers: object = {}): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'x-amzn-RequestId': randomUUID(),
    ...headers,
  })
  response.end(JSON.stringify(body))
}
