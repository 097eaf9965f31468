import { execFile } from 'node:child_process'
import { createPrivateKey, type KeyObject, randomBytes, randomUUID, sign } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { cleanUp } from '../harness/cleanup.ts'
import { eventually } from '../harness/waiting.ts'
import { sesConfigurationSet } from './ses-outbound.ts'

/**
 * Amazon SNS from a subscriber's point of view: signed messages, the signing certificate, the URL that confirms a
 * subscription, and a publisher that retries until it receives a 200.
 */
export interface SnsPeer {
  url: string
  topicArn: string
  /** The settings for sending with SES and receiving events from this peer. */
  settings: Record<string, string>
  /** The query of every request that confirms a subscription. */
  confirmed: URLSearchParams[]
  /** The path of every requested certificate. */
  fetched: string[]
  /** The next requests get a response with this status. */
  failNext(status: number, times?: number): void
  /** A genuine message, with changes applied before signing. */
  notification(message: string, changes?: Record<string, string | undefined>): SnsFields
  confirmation(
    type: 'SubscriptionConfirmation' | 'UnsubscribeConfirmation',
    changes?: Partial<SnsFields>,
  ): SnsFields
  /** Signs a changed message again. */
  signed(fields: SnsFields, signer?: SnsSigner): SnsFields
  /** Serves a new certificate at its own path. Valid for a year by default. */
  addSigner(subject?: { days?: number; bits?: number }): Promise<SnsSigner>
  /** The certificate for signing messages. */
  certificateOf(): Buffer | undefined
  /** Serves other content at a path. */
  serve(path: string, status: number, body: string | Buffer, headers?: Record<string, string>): void
  close(): Promise<void>
}

export interface SnsSigner {
  path: string
  key: KeyObject
}

export type SnsFields = Record<string, string> & { Type: string }

const region = 'eu-west-1'
const host = `https://sns.${region}.amazonaws.com`
const signedFields = {
  notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  confirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
}

/** Closed after the file's tests. */
export async function startSnsPeer(): Promise<SnsPeer> {
  const peer = await openSnsPeer()
  cleanUp(() => peer.close())
  return peer
}

/** The caller must close it. */
export async function openSnsPeer(): Promise<SnsPeer> {
  const peer = new Peer()
  const server = createServer((request, response) => {
    const { status, body, headers = {} } = peer.answer(request.url ?? '')
    response.writeHead(status, headers).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  peer.close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await peer.open((server.address() as AddressInfo).port)
  return peer
}

interface Answer {
  status: number
  body: string | Buffer
  headers?: Record<string, string>
}

class Peer implements SnsPeer {
  url = ''
  readonly topicArn = `arn:aws:sns:${region}:111122223333:postern-events`
  settings: Record<string, string> = {}
  close: () => Promise<void> = async () => {}
  readonly confirmed: URLSearchParams[] = []
  readonly fetched: string[] = []
  readonly #failures: number[] = []
  readonly #served = new Map<string, Answer>()
  #signer: SnsSigner | undefined

  async open(port: number): Promise<void> {
    this.url = `http://127.0.0.1:${port}`
    this.settings = {
      POSTERN_SES_CONFIGURATION_SET: sesConfigurationSet,
      POSTERN_SES_TOPIC_ARNS: this.topicArn,
      POSTERN_SNS_ENDPOINT: this.url,
    }
    this.#signer = await this.addSigner()
  }

  failNext(status: number, times = 1): void {
    for (let i = 0; i < times; i++) this.#failures.push(status)
  }

  serve(at: string, status: number, body: string | Buffer, headers: Record<string, string> = {}): void {
    this.#served.set(at, { status, body, headers })
  }

  certificateOf(): Buffer | undefined {
    const served = this.#served.get(this.#signer?.path ?? '')
    return served && Buffer.from(served.body)
  }

  answer(address: string): Answer {
    const url = new URL(address, this.url)
    const isConfirmation = url.searchParams.get('Action') === 'ConfirmSubscription'
    if (!isConfirmation) this.fetched.push(url.pathname)
    const failure = this.#failures.shift()
    if (failure !== undefined) return { status: failure, body: '' }
    if (!isConfirmation) return this.#served.get(url.pathname) ?? { status: 404, body: '' }
    this.confirmed.push(url.searchParams)
    return { status: 200, body: '<ConfirmSubscriptionResponse/>' }
  }

  async addSigner({ days = 365, bits = 2048 } = {}): Promise<SnsSigner> {
    const folder = await mkdtemp(path.join(tmpdir(), 'postern-sns-'))
    try {
      const [key, request, certificate] = ['key', 'request', 'certificate'].map((name) =>
        path.join(folder, `${name}.pem`),
      ) as [string, string, string]
      const openssl = (...args: string[]) => promisify(execFile)('openssl', args)
      const subject = ['-newkey', `rsa:${bits}`, '-nodes', '-subj', '/CN=sns.amazonaws.com']
      await openssl('req', '-new', ...subject, '-keyout', key, '-out', request)
      // In two steps, because `req` cannot create an expired certificate.
      await openssl(
        ...['x509', '-req', '-in', request, '-signkey', key, '-days', String(days), '-out', certificate],
      )
      const at = `/SimpleNotificationService-${randomBytes(16).toString('hex')}.pem`
      this.serve(at, 200, await readFile(certificate))
      return { path: at, key: createPrivateKey(await readFile(key)) }
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  notification(message: string, changes: Record<string, string | undefined> = {}): SnsFields {
    return this.signed({
      ...{ Type: 'Notification', MessageId: randomUUID(), TopicArn: this.topicArn, Message: message },
      Subject: 'Amazon SES Email Event Notification',
      Timestamp: new Date().toISOString(),
      UnsubscribeURL: `${host}/?Action=Unsubscribe`,
      ...changes,
    } as SnsFields)
  }

  confirmation(type: SnsFields['Type'], changes: Partial<SnsFields> = {}): SnsFields {
    const token = randomBytes(32).toString('hex')
    return this.signed({
      ...{ Type: type, MessageId: randomUUID(), TopicArn: this.topicArn, Token: token },
      Message: 'You have chosen to subscribe to the topic.',
      SubscribeURL: `${host}/?Action=ConfirmSubscription&TopicArn=${this.topicArn}&Token=${token}`,
      Timestamp: new Date().toISOString(),
      ...changes,
    } as SnsFields)
  }

  signed(fields: SnsFields, signer = this.#signer): SnsFields {
    if (!signer) throw new Error('no signing certificate')
    const names = fields.Type === 'Notification' ? signedFields.notification : signedFields.confirmation
    const text = names
      .filter((name) => fields[name] !== undefined)
      .map((name) => `${name}\n${fields[name]}\n`)
      .join('')
    return {
      SigningCertURL: `${host}${signer.path}`,
      SignatureVersion: '2',
      ...fields,
      Signature: sign('sha256', Buffer.from(text), signer.key).toString('base64'),
    }
  }
}

/** As SNS posts it. */
export const postSns = (
  apiUrl: string,
  body: string | Uint8Array<ArrayBuffer> | object,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(new URL('/v1/intake/sns', apiUrl), {
    method: 'POST',
    headers: { 'content-type': 'text/plain; charset=UTF-8', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  })

/** Posts a message until the response is 200, as SNS does after server errors. */
export async function publishSns(apiUrl: string, fields: SnsFields): Promise<void> {
  const isTaken = () =>
    postSns(apiUrl, fields).then(
      ({ status }) => status === 200,
      () => false,
    )
  await eventually('the API accepts an SNS message', isTaken, { everyMs: 50 })
}
