import { seenDays } from '../../core/mail/feedback/feedback.ts'
import type { FeedbackDeps } from '../../core/mail/feedback/ingest-report.ts'
import { ingestSesEvent } from '../../core/mail/feedback/ingest-ses-event.ts'
import { PosternError } from '../../platform/errors.ts'
import { createRateLimit, networkOf, type RateLimit } from '../../platform/http/rate-limit.ts'
import type { HttpServer } from '../../platform/http/server.ts'
import { certificatePathOf, isSigned, readSnsMessage, type SnsMessage } from '../../providers/sns.ts'
import { SnsClient, SnsUnavailable } from '../../providers/sns-client.ts'

/**
 * Where Amazon SNS posts what Amazon SES has to tell. Whoever can reach the API can post here, so nothing in a message
 * is believed before its signature is: the topic must be one that the operator has named, the certificate must lie at
 * the SNS of that topic's region, and the address is compared before anything is fetched.
 *
 * 200 is said when the transaction has committed. Until then SNS has the message, and brings it again.
 */
export interface SnsDeps extends FeedbackDeps {
  topicArns: readonly string[]
  /** In place of the public SNS. */
  endpoint: string | undefined
}

/** SNS sends up to 256 KiB, and what is around it. */
const maxBytes = 256 * 1024
const dayMs = 24 * 3600_000
// Less than feedback is remembered for, so that an old message that is shown again is either known, or too old.
const maxAgeMs = (seenDays - 1) * dayMs
const maxAheadMs = 5 * 60_000
// Far above what a mistake makes.
const refusalsPerMinute = 60
const fetchesPerMinute = 10

export function snsRoute(app: HttpServer, deps: SnsDeps): void {
  const door = new SnsDoor(deps)
  void app.register((own, _options, done) => {
    // SNS posts JSON as text; nobody else does.
    own.removeAllContentTypeParsers()
    own.addContentTypeParser(
      'text/plain',
      { parseAs: 'buffer', bodyLimit: maxBytes },
      (_request, body, parsed) => parsed(null, body),
    )
    // Not in the OpenAPI document: it is between Amazon and us.
    own.post('/v1/intake/sns', { bodyLimit: maxBytes, schema: { hide: true } }, async ({ body, ip }) => {
      await door.take(body as Buffer | undefined, networkOf(ip))
      return { status: 'ok' }
    })
    done()
  })
}

class SnsDoor {
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

  async take(body: Buffer | undefined, network: string): Promise<void> {
    const message = body && readSnsMessage(body)
    const fault = message ? await this.#faultOf(message, network) : 'it is no message of SNS'
    if (!message || fault !== undefined) {
      await this.#refused(network)
      // A stranger's topic stays out of the log, which is not theirs to write.
      this.#deps.log.warn({ network, fault }, 'a message that is not from our SNS was refused')
      throw new PosternError('unauthenticated', 'This is no message of a topic that is listened to here.')
    }
    if (message.type === 'Notification') await ingestSesEvent(this.#deps, message.message)
    else if (message.type === 'SubscriptionConfirmation') await this.#confirm(message)
    else {
      const { topicArn: topic } = message
      this.#deps.log.warn({ topic }, 'SNS has ended the subscription: nothing more is heard from this topic')
    }
  }

  /** What is wrong with it, from what costs least to what costs most. */
  async #faultOf(message: SnsMessage, network: string): Promise<string | undefined> {
    const { topicArn, signatureVersion, sentAt } = message
    if (!this.#topics.has(topicArn)) return 'its topic is not one of POSTERN_SES_TOPIC_ARNS'
    const path = certificatePathOf(message)
    if (path === undefined) return "its certificate is not at the SNS of the topic's region"
    if (signatureVersion !== '2') {
      return 'its signature is not of version 2: aws sns set-topic-attributes --attribute-name SignatureVersion --attribute-value 2'
    }
    const age = Date.now() - sentAt.getTime()
    if (age > maxAgeMs) return 'it is too old'
    if (age < -maxAheadMs) return 'it is from the future'
    const key = await this.#asked(() => this.#client.keyOf(topicArn, path, () => this.#fetched(network)))
    if (!key) return 'its certificate is not there, or not valid'
    return isSigned(message, key) ? undefined : 'its signature is wrong'
  }

  /** At the address that we know, not at the one in the message. */
  async #confirm({ topicArn, token }: SnsMessage): Promise<void> {
    await this.#asked(() => this.#client.confirm(topicArn, token ?? ''))
    this.#deps.log.info({ topic: topicArn }, 'the subscription to this topic is confirmed')
  }

  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof SnsUnavailable)) throw error
      this.#deps.log.warn({ err: error }, 'a message of SNS could not be taken; it will come again')
      throw new PosternError('unavailable', 'SNS cannot be asked at this moment. Send it again.')
    }
  }
}
