import type { FastifyReply } from 'fastify'

/** The response to a mutation, also stored for repeated requests with the same idempotency key. */
export interface HttpResponse {
  status: number
  /** JSON, or null for an empty body. */
  body: string | null
  etag: string | null
  location: string | null
  isRepeated?: true
}

export const asResponse = (status: number, body: unknown): HttpResponse => ({
  status,
  body: JSON.stringify(body),
  etag: null,
  location: null,
})

export function sendResponse(reply: FastifyReply, answer: HttpResponse): FastifyReply {
  reply.status(answer.status)
  if (answer.etag !== null) reply.header('etag', answer.etag)
  if (answer.location !== null) reply.header('location', answer.location)
  if (answer.isRepeated) reply.header('idempotent-replayed', 'true')
  return answer.body === null ? reply.send() : sendJson(reply, answer.body)
}

export const sendJson = (reply: FastifyReply, body: string): FastifyReply =>
  reply.type('application/json; charset=utf-8').send(body)
