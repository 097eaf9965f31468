import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import Type, { type TSchema } from 'typebox'
import type { Draft, ReadDraft } from '../../core/mail/messages/draft.ts'
import { type ErrorCode, PosternError } from '../../platform/errors.ts'
import { type BodyCheck, CheckedBody } from '../../platform/http/checked-body.ts'
import { hasManyValues, hasTooManyToParse, manyValues } from '../../platform/http/many-values.ts'
import { unstorableText } from '../../platform/http/storable.ts'
import { parseStrictJson } from '../../platform/http/strict-json.ts'
import { validationMessage } from '../../platform/http/validation-messages.ts'
import { ajvOptions, buildValidator } from '../../platform/http/validators.ts'
import { mailsOf, type RequestMails, type SendingOperation, sendingBodies } from './request-mails.ts'

/** A large body as received. Its bytes are transferred to the worker thread. */
export interface LargeBody {
  operation: SendingOperation
  bytes: Uint8Array
  /** Whether the request has an Idempotency-Key. The hash of the body is then needed. */
  isRepeatable: boolean
}

/** A PosternError as a message between threads. */
interface Fault {
  code: ErrorCode
  message: string
}

type SentDraft =
  | { draft: Omit<Draft, 'content'> & { content: Uint8Array<ArrayBuffer> }; senderDomain: string }
  | { fault: Fault; senderDomain: string | null }

type Word =
  | { mails: SentDraft[]; requestHash: Uint8Array | undefined }
  | { fault: Fault; check: BodyCheck | 'json' }
  | { failure: string }

interface Waiting extends LargeBody {
  resolve(body: CheckedBody): void
  reject(error: Error): void
}

export interface BodyReaderOptions {
  /** The time limit for one body. A body of 36 MiB takes about a second, or seven seconds on a busy machine. */
  withinMs?: number
  /** An idle thread is terminated after this time, because its heap may occupy hundreds of megabytes. */
  idleMs?: number
  /** The worker thread's entry module. Tests replace it. */
  module?: URL
}

const role = 'postern body reader'
/** Three times the maximum for a body that passes `hasTooManyToParse`: the worst body of 36 MiB needed 160 MB. */
const heapMb = 512

/**
 * A worker thread that parses and validates large bodies and composes their messages. A body of 36 MiB takes hundreds of
 * milliseconds. Meanwhile, the main thread serves other requests. The thread handles one body at a time; the byte budget
 * of customer/large-bodies.ts limits how many wait. If the thread exits, or is terminated because it takes too long, the
 * current body fails and the next one gets a new thread.
 */
export class BodyReader {
  readonly #withinMs: number
  readonly #idleMs: number
  readonly #module: URL
  readonly #waiting: Waiting[] = []
  #current: Waiting | undefined
  #worker: Worker | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ withinMs = 20_000, idleMs = 60_000, module }: BodyReaderOptions = {}) {
    this.#withinMs = withinMs
    this.#idleMs = idleMs
    this.#module = module ?? new URL(import.meta.url)
  }

  /** Rejects for invalid JSON. The returned body reports failures of the later checks. */
  read(body: LargeBody): Promise<CheckedBody> {
    if (this.#isClosed) throw new Error('the body reader is closed')
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...body, resolve, reject })
      this.#next()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { reject } of this.#waiting.splice(0)) reject(notRead('the body reader was closed'))
    await this.#worker?.terminate()
  }

  #next(): void {
    if (this.#current || this.#isClosed) return
    clearTimeout(this.#timer)
    this.#current = this.#waiting.shift()
    if (!this.#current) {
      this.#worker?.unref()
      this.#timer = setTimeout(() => this.#end(), this.#idleMs).unref()
      return
    }
    this.#timer = setTimeout(() => this.#fail(`a body took more than ${this.#withinMs} ms`), this.#withinMs)
    try {
      this.#send(this.#current)
    } catch (error) {
      // The worker thread could not be started. The next body tries again.
      this.#fail(String(error))
    }
  }

  #send({ operation, bytes, isRepeatable }: Waiting): void {
    this.#worker ??= this.#start()
    // The process must not exit while a response is pending.
    this.#worker.ref()
    this.#worker.postMessage({ operation, bytes, isRepeatable } satisfies LargeBody, [
      bytes.buffer as ArrayBuffer,
    ])
  }

  #start(): Worker {
    const worker = new Worker(this.#module, {
      workerData: role,
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    })
    const ifMine = (act: () => void) => {
      if (this.#worker === worker) act()
    }
    worker.on('message', (word: Word) => ifMine(() => this.#hear(word)))
    worker.on('error', (error) => ifMine(() => this.#fail(String(error))))
    worker.on('exit', () => ifMine(() => this.#fail('the thread ended')))
    return worker
  }

  #hear(word: Word): void {
    const asker = this.#current
    // With `node --watch`, threads also post messages about their imports.
    if (!asker || !('mails' in word || 'fault' in word || 'failure' in word)) return
    this.#current = undefined
    if ('mails' in word) asker.resolve(new CheckedBody({ content: receivedMails(word) }))
    else if ('failure' in word) asker.reject(new Error(word.failure))
    else if (word.check === 'json') asker.reject(errorOf(word.fault))
    else asker.resolve(new CheckedBody({ fault: { check: word.check, error: errorOf(word.fault) } }))
    this.#next()
  }

  #fail(why: string): void {
    const asker = this.#current
    this.#current = undefined
    this.#end()
    asker?.reject(notRead(why))
    this.#next()
  }

  #end(): void {
    void this.#worker?.terminate()
    this.#worker = undefined
  }
}

const notRead = (why: string): PosternError =>
  new PosternError('unavailable', 'The body could not be processed in time. Retry the request shortly.', {
    cause: new Error(why),
    retryAfterSeconds: 1,
  })

const receivedMails = ({ mails, requestHash }: Extract<Word, { mails: unknown }>): RequestMails => ({
  mails: mails.map(
    (mail): ReadDraft =>
      'fault' in mail
        ? { fault: errorOf(mail.fault), senderDomain: mail.senderDomain }
        : { ...mail, draft: { ...mail.draft, content: bufferOf(mail.draft.content) } },
  ),
  requestHash: requestHash && bufferOf(requestHash),
})

/** A Buffer arrives from a thread as a Uint8Array. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

const errorOf = ({ code, message }: Fault): PosternError => new PosternError(code, message)

/** Runs in the worker thread. */
function readBody({ operation, bytes, isRepeatable }: LargeBody): Word {
  if (hasTooManyToParse(bytes)) return refused('values', manyValues())
  let body: unknown
  try {
    body = parseStrictJson(bytes)
  } catch (error) {
    if (error instanceof PosternError) return refused('json', error)
    throw error
  }
  if (hasManyValues(body)) return refused('values', manyValues())
  const unstorable = unstorableText(body)
  if (unstorable) return refused('text', unstorable)
  const fault = faultOf(schemas[operation], body)
  if (fault !== undefined) return refused('schema', new PosternError('validation_failed', fault))
  const { mails, requestHash } = mailsOf(operation, body as object, { isRepeatable, faultOf })
  return { mails: mails.map(sentDraft), requestHash }
}

const refused = (check: BodyCheck | 'json', fault: PosternError): Word => ({ check, fault: faultIn(fault) })

const faultIn = ({ code, message }: PosternError): Fault => ({ code, message })

const sentDraft = (mail: ReadDraft): SentDraft =>
  'fault' in mail
    ? { fault: faultIn(mail.fault), senderDomain: mail.senderDomain }
    : { ...mail, draft: { ...mail.draft, content: ownBytes(mail.draft.content) } }

/** Only a whole ArrayBuffer can be transferred; small Buffers share one. */
const ownBytes = (content: Buffer): Uint8Array<ArrayBuffer> =>
  content.byteLength === content.buffer.byteLength && content.buffer instanceof ArrayBuffer
    ? new Uint8Array(content.buffer)
    : new Uint8Array(content)

const schemas = {
  'messages.send': Type.Object(sendingBodies['messages.send'], { additionalProperties: false }),
  'messages.send-batch': Type.Object(sendingBodies['messages.send-batch'], { additionalProperties: false }),
}

const compile = buildValidator({}, { customOptions: ajvOptions })
const validators = new Map<TSchema, ReturnType<typeof compile>>()

function faultOf(schema: TSchema, value: unknown): string | undefined {
  const validate = validators.get(schema) ?? compile({ schema })
  validators.set(schema, validate)
  return validate(value) ? undefined : validationMessage(validate.errors ?? [])
}

function answer(body: LargeBody): void {
  let word: Word
  try {
    word = readBody(body)
  } catch (error) {
    word = { failure: (error as Error).message }
  }
  const mails = 'mails' in word ? word.mails : []
  parentPort?.postMessage(
    word,
    mails.flatMap((mail) => ('draft' in mail ? [mail.draft.content.buffer] : [])),
  )
}

if (!isMainThread && workerData === role) parentPort?.on('message', answer)
