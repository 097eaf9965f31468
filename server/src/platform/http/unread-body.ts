import type { FastifyReply, FastifyRequest } from 'fastify'

/** Long enough for an answer to arrive anywhere; nginx waits as long. */
const lingerMs = 5_000

/**
 * For a request that is answered although its body is not read: the connection ends after the answer.
 *
 * Node would close it at once, with bytes of the body unread. Then the kernel resets the connection, and the answer may be
 * lost on its way (RFC 9112 §9.6). So we only say that nothing follows, and drop what still arrives until the client closes
 * or the time is up.
 */
export function leaveBodyUnread({ raw: { socket } }: FastifyRequest, reply: FastifyReply): void {
  reply.header('connection', 'close')
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => socket.destroy(), lingerMs).unref()
  }
}
