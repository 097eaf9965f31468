import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Long enough for the response to arrive; the same as nginx's lingering_timeout. */
const lingerMs = 5_000

/**
 * Closes the connection after a response that is sent before the body is read.
 *
 * Node would close the socket immediately. With unread data, the kernel then resets the connection, and the client may
 * lose the response (RFC 9112 §9.6). Instead, only the sending side is closed, and incoming data is discarded until the
 * client closes the connection or the timeout expires.
 */
export function leaveBodyUnread({ raw: { socket } }: FastifyRequest, reply: FastifyReply): void {
  reply.header('connection', 'close')
  socket.destroySoon = () => endAndLinger(socket)
}

/** The same for a request that cannot be read as HTTP, whose response is written to the socket. */
export function endAndLinger(socket: Socket, lastBytes?: string): void {
  if (lastBytes === undefined) socket.end()
  else socket.end(lastBytes)
  setTimeout(() => socket.destroy(), lingerMs).unref()
}
