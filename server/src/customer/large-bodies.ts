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
 * Before a large body of mail is read, its sender must be able to send anything at all.
 *
 * Large bodies share two budgets of bytes, with a share for each project: one for bodies that are being read, and a smaller
 * one for bodies that are parsed and handled, which take several times their size. Both are taken before the work begins:
 * a body that waits stays with the client. Both are given back when the answer is sent or the client is gone.
 *
 * A client decides how slowly its body arrives. So only the first budget can be held up by clients, for the half minute
 * that a request may take.
 *
 * Bodies of mail above 1 MiB are parsed, checked and made into mails in a thread (messages/body-reader.ts).
 */
const readingBytes = 256 * mebibyte
const handlingBytes = 72 * mebibyte

/** What a request has of the budgets. */
interface Held {
  /** The answer is sent, or the client is gone. */
  isOver: boolean
  /** The thread has its body: the bytes are in memory whatever became of the client. */
  isInThread: boolean
  giveBack: (() => void)[]
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null: its body is small. */
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
    // A client that left while it was looked at who it is: it has been told already.
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

/** Strangers are refused elsewhere, in their turn. */
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

/** A body that does not say how long it is counts as the longest that the route takes. */
function announcedBytes({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return bodyLimit
  const length = Number(headers['content-length'] ?? 0)
  return Number.isSafeInteger(length) ? Math.min(length, bodyLimit) : bodyLimit
}

const holderOf = ({ projectId, ip }: FastifyRequest): string =>
  projectId === null ? `network ${networkOf(ip)}` : `project ${projectId}`
