import type { FastifyRequest } from 'fastify'
import { refusalBeforeBody } from '../core/messages/before-body.ts'
import { ByteBudget } from '../platform/byte-budget.ts'
import type { PosternError } from '../platform/errors.ts'
import { ordinaryBodyLimitBytes } from '../platform/http/checks.ts'
import { networkOf } from '../platform/http/rate-limit.ts'
import { type HttpServer, strictJsonParser } from '../platform/http/server.ts'
import { leaveBodyUnread } from '../platform/http/unread-body.ts'
import { actorOf } from './caller.ts'
import { senderOf } from './messages/sender.ts'
import type { CustomerDeps } from './operation.ts'
import type { OperationId } from './roles.ts'

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
 */
const readingBytes = 256 * mebibyte
const handlingBytes = 72 * mebibyte

/** What a request has of the budgets. */
interface Held {
  isOver: boolean
  giveBack: (() => void)[]
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null: its body is small. */
    heldBytes: Held | null
  }
}

export function shareLargeBodies(plane: HttpServer, deps: Pick<CustomerDeps, 'cellOf' | 'caps'>): void {
  const reading = new ByteBudget<string>(readingBytes)
  const handling = new ByteBudget<string>(handlingBytes)

  plane.decorateRequest('heldBytes', null)
  plane.addHook('preParsing', async (request, reply, payload) => {
    const size = announcedBytes(request)
    if (size <= ordinaryBodyLimitBytes) return payload
    const refused = await earlyRefusal(request, deps)
    if (refused) {
      leaveBodyUnread(request, reply)
      throw refused
    }
    const held: Held = { isOver: false, giveBack: [] }
    request.heldBytes = held
    reply.raw.once('close', () => {
      held.isOver = true
      for (const giveBack of held.giveBack) giveBack()
    })
    await take(reading, size, request)
    return payload
  })

  const parse = strictJsonParser(plane)
  plane.removeContentTypeParser('application/json')
  plane.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (!request.heldBytes) return void parse(request, body, done)
    take(handling, body.length, request).then(() => parse(request, body, done), done)
  })
}

const isSending = (
  operation: OperationId | undefined,
): operation is 'messages.send' | 'messages.send-batch' =>
  operation === 'messages.send' || operation === 'messages.send-batch'

/** Strangers are refused elsewhere, in their turn. */
async function earlyRefusal(
  { customer, headers, routeOptions: { config } }: FastifyRequest,
  { cellOf, caps }: Pick<CustomerDeps, 'cellOf' | 'caps'>,
): Promise<PosternError | undefined> {
  const operation = config.access?.operation
  if (!isSending(operation) || (customer?.kind !== 'key' && customer?.kind !== 'member')) return undefined
  const key = headers['idempotency-key']
  const repeatable = typeof key === 'string' ? { actor: actorOf(customer), operation, key } : undefined
  return cellOf(customer.projectId).mail.glance((tx) =>
    refusalBeforeBody(tx, senderOf(customer), repeatable, caps),
  )
}

async function take(budget: ByteBudget<string>, size: number, request: FastifyRequest): Promise<void> {
  const giveBack = await budget.take(size, holderOf(request))
  if (!request.heldBytes || request.heldBytes.isOver) giveBack()
  else request.heldBytes.giveBack.push(giveBack)
}

/** A body that does not say how long it is counts as the longest that the route takes. */
function announcedBytes({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return bodyLimit
  const length = Number(headers['content-length'] ?? 0)
  return Number.isSafeInteger(length) ? Math.min(length, bodyLimit) : bodyLimit
}

const holderOf = ({ projectId, ip }: FastifyRequest): string =>
  projectId === null ? `network ${networkOf(ip)}` : `project ${projectId}`
