import type { FeedbackDeps } from '../../core/mail/feedback/ingest-report.ts'
import { ingestSesEvent } from '../../core/mail/feedback/ingest-ses-event.ts'
import { PosternError } from '../../platform/errors.ts'
import { createRateLimit, networkOf, type RateLimit } from '../../platform/http/rate-limit.ts'
import type { HttpServer } from '../../platform/http/server.ts'
import { certificatePathOf, isSigned, readSnsMessage, type SnsMessage } from '../../providers/sns.ts'
import { SnsClient, SnsUnavailable } from '../../providers/sns-client.ts'

/**
 * The endpoint to which Amazon SNS posts Amazon SES events. Any client that can reach the API can post here,
 * so nothing in a message is trusted before its signature is verified. The operator must have configured the
 * topic, and the certificate must be hosted on the SNS host of that topic's region; the certificate's URL is
 * checked before it is fetched.
 *
 * 200 is sent only after the transaction has committed. Until then, SNS keeps the message and retries.
 */
export interface SnsDeps extends FeedbackDeps {
  topicArns: readonly string[]
  /** Replaces the public SNS endpoint. */
  endpoint: string | undefined
}

/** Size limit of an SNS message. */
const maxBytes = 256 * 1024
const dayMs = 24 * 3600_000
// Two weeks after a recipient's last change of status, only complaints are still applied.
const maxAgeMs = 13 * dayMs
const maxAheadMs = 5 * 60_000
// Far above the rate that a misconfiguration would cause.
const refusalsPerMinute = 60
const fetchesPerMinute = 10

export function snsRoute(app: HttpServer, deps: SnsDeps): void {
  const receiver = new SnsReceiver(deps)
  void app.register((own, _options, done) => {
    // SNS posts JSON as text/plain; no other client does.
    own.removeAllContentTypeParsers()
    own.addContentTypeParser(
      'text/plain',
      { parseAs: 'buffer', bodyLimit: maxBytes },
      (_request, body, parsed) => parsed(null, body),
    )
    // Not in the OpenAPI document: only SNS calls it.
    own.post('/v1/intake/sns', { bodyLimit: maxBytes, schema: { hide: true } }, async ({ body, ip }) => {
      await receiver.receive(body as Buffer | undefined, networkOf(ip))
      return { status: 'ok' }
    })
    done()
  })
}

class SnsReceiver {
  readonly #deps: SnsDeps
  readonly #client: SnsClient
  readonly #topics: ReadonlySet<string>
  readonly #refused: RateLimit = createRateLimit(refusalsPerMinute, 'this address')
  readonly #fetched: RateLimit = createRateLimit(fetchesPerMinute, 'this address')

  constructor(deps: SnsDeps) {
    this.#deps = deps
    this.#topics = new Set(deps.topicArns)
    this.#client = new SnsClient({ endpoint: deps.endpoint })
  }

  async receive(body: Buffer | undefined, network: string): Promise<void> {
    const message = body && readSnsMessage(body)
    const fault = message ? await this.#faultOf(message, network) : 'not an SNS message'
    if (!message || fault !== undefined) {
      await this.#refused(network)
      // The topic is not logged, because its text comes from an unauthenticated client.
      this.#deps.log.warn({ network, fault }, 'SNS message rejected')
      throw new PosternError('unauthenticated', 'The message does not come from a configured SNS topic.')
    }
    if (message.type === 'Notification') await ingestSesEvent(this.#deps, message.message)
    else if (message.type === 'SubscriptionConfirmation') await this.#confirm(message)
    else {
      const { topicArn: topic } = message
      this.#deps.log.warn({ topic }, 'SNS ended the subscription; no more events will arrive from this topic')
    }
  }

  /** Returns the reason why a message is rejected. The cheapest checks come first. */
  async #faultOf(message: SnsMessage, network: string): Promise<string | undefined> {
    const { topicArn, signatureVersion, sentAt } = message
    if (!this.#topics.has(topicArn)) return 'topic not listed in POSTERN_SES_TOPIC_ARNS'
    const path = certificatePathOf(message)
    if (path === undefined) return "certificate URL not at the SNS host of the topic's region"
    if (signatureVersion !== '2') {
      return 'signature version is not 2: aws sns set-topic-attributes --attribute-name SignatureVersion --attribute-value 2'
    }
    const age = Date.now() - sentAt.getTime()
    if (age > maxAgeMs) return 'message too old'
    if (age < -maxAheadMs) return 'timestamp in the future'
    const countFetch = async () => void (await this.#fetched(network))
    const key = await this.#callSns(() => this.#client.keyOf(topicArn, path, countFetch))
    if (!key) return 'certificate missing or invalid'
    return isSigned(message, key) ? undefined : 'invalid signature'
  }

  /** Uses the configured host, not the URL in the message. */
  async #confirm({ topicArn, token }: SnsMessage): Promise<void> {
    await this.#callSns(() => this.#client.confirm(topicArn, token ?? ''))
    this.#deps.log.info({ topic: topicArn }, 'SNS subscription confirmed')
  }

  async #callSns<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof SnsUnavailable)) throw error
      this.#deps.log.warn(
        { err: error },
        'SNS message not processed because SNS is unavailable; SNS will retry',
      )
      throw new PosternError('unavailable', 'SNS is temporarily unavailable. Send the message again.')
    }
  }
}
