import type { FastifyRequest } from 'fastify'
import { refusalBeforeBody } from '../core/mail/messages/before-body.ts'
import { largeBytes } from '../core/mail/messages/large.ts'
import { PosternError } from '../platform/errors.ts'
import type { CheckedBody } from '../platform/http/checked-body.ts'
import { networkOf } from '../platform/http/rate-limit.ts'
import { ordinaryBodyLimitBytes } from '../platform/http/request-checks.ts'
import { type HttpServer, parseJsonBody } from '../platform/http/server.ts'
import { requireIdentityEncoding, requireUtf8 } from '../platform/http/strict-json.ts'
import { leaveBodyUnread } from '../platform/http/unread-body.ts'
import { ByteBudget } from '../platform/scheduling/byte-budget.ts'
import { actorOf } from './caller.ts'
import type { BodyReader, LargeBody } from './messages/body-reader.ts'
import type { SendingOperation } from './messages/request-mails.ts'
import { senderOf } from './messages/sender.ts'
import type { CustomerDeps } from './operation.ts'

const mebibyte = 1024 * 1024

/**
 * Limits the memory used by large request bodies. A large body that contains messages is read only if the project is able
 * to send.
 *
 * Large bodies share two byte budgets, with a share for each project: one for bodies that are being read, and a smaller one
 * for bodies that are being parsed and handled, because they need several times their size. Bytes are acquired before the
 * work begins, so a waiting body stays with the client. They are released when the response is sent or the client
 * disconnects.
 *
 * A client determines how slowly its body arrives, so clients can block only the first budget, for at most the request
 * timeout of 30 seconds.
 *
 * Bodies of messages above 1 MiB are parsed, validated and composed in a worker thread (messages/body-reader.ts).
 */
const readingBytes = 256 * mebibyte
const handlingBytes = 72 * mebibyte

/** The bytes that a request has acquired. */
interface Held {
  /** Whether the response has been sent or the client has disconnected. */
  isOver: boolean
  /** Whether the worker thread has the body. Its bytes are then in memory even if the client has disconnected. */
  isInThread: boolean
  giveBack: (() => void)[]
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null if the body is small. */
    heldBytes: Held | null
  }
}

export interface LargeBodyDeps extends Pick<CustomerDeps, 'cellOf' | 'caps'> {
  bodyReader: BodyReader
}

export function shareLargeBodies(plane: HttpServer, deps: LargeBodyDeps): void {
  const reading = new ByteBudget<string>(readingBytes)
  const handling = new ByteBudget<string>(handlingBytes)

  plane.decorateRequest('heldBytes', null)
  plane.addHook('preParsing', async (request, reply, payload) => {
    const size = announcedBytes(request)
    if (size <= ordinaryBodyLimitBytes) return payload
    const held: Held = { isOver: false, isInThread: false, giveBack: [] }
    request.heldBytes = held
    reply.raw.once('close', () => {
      held.isOver = true
      release(held)
    })
    // The client may have disconnected during authentication, before the listener was added.
    held.isOver = reply.raw.closed || request.raw.destroyed
    const refused = await earlyRefusal(request, deps)
    if (refused) {
      leaveBodyUnread(request, reply)
      throw refused
    }
    await take(reading, size, request, held)
    return payload
  })

  plane.removeContentTypeParser('application/json')
  plane.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    const held = request.heldBytes
    if (!held) return void parseJsonBody(request, body, done)
    take(handling, body.length, request, held).then(() => {
      const operation = sendingOperationOf(request)
      if (!operation || body.length <= largeBytes) return void parseJsonBody(request, body, done)
      readInThread(request, held, { operation, bytes: body }, deps).then((read) => done(null, read), done)
    }, done)
  })
}

async function readInThread(
  { headers }: FastifyRequest,
  held: Held,
  body: Omit<LargeBody, 'isRepeatable'>,
  { bodyReader }: LargeBodyDeps,
): Promise<CheckedBody> {
  requireUtf8(headers['content-type'])
  requireIdentityEncoding(headers['content-encoding'])
  held.isInThread = true
  try {
    return await bodyReader.read({ ...body, isRepeatable: headers['idempotency-key'] !== undefined })
  } finally {
    held.isInThread = false
    release(held)
  }
}

function release({ isOver, isInThread, giveBack }: Held): void {
  if (isOver && !isInThread) for (const give of giveBack) give()
}

function sendingOperationOf({ routeOptions: { config } }: FastifyRequest): SendingOperation | undefined {
  const operation = config.access?.operation
  return operation === 'messages.send' || operation === 'messages.send-batch' ? operation : undefined
}

/** Callers without access are rejected elsewhere. */
async function earlyRefusal(
  request: FastifyRequest,
  { cellOf, caps }: LargeBodyDeps,
): Promise<PosternError | undefined> {
  const { customer, headers } = request
  const operation = sendingOperationOf(request)
  if (!operation || (customer?.kind !== 'key' && customer?.kind !== 'member')) return undefined
  const key = headers['idempotency-key']
  const repeatable = typeof key === 'string' ? { actor: actorOf(customer), operation, key } : undefined
  return cellOf(customer.projectId).mail.readOne((tx) =>
    refusalBeforeBody(tx, senderOf(customer), repeatable, caps),
  )
}

async function take(
  budget: ByteBudget<string>,
  size: number,
  request: FastifyRequest,
  held: Held,
): Promise<void> {
  const giveBack = await budget.take(size, holderOf(request))
  held.giveBack.push(giveBack)
  if (!held.isOver) return
  release(held)
  throw new PosternError('invalid_json', 'The client closed the connection.')
}

/** A body of unknown length counts as the largest body that the route accepts. */
function announcedBytes({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return bodyLimit
  const length = Number(headers['content-length'] ?? 0)
  return Number.isSafeInteger(length) ? Math.min(length, bodyLimit) : bodyLimit
}

const holderOf = ({ projectId, ip }: FastifyRequest): string =>
  projectId === null ? `network ${networkOf(ip)}` : `project ${projectId}`
