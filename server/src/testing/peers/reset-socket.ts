import type { Socket } from 'node:net'

/**
 * Closes a connection with a RST. A socket that is shutting down is closed normally: for such a socket
 * `uv_tcp_close_reset` fails with EINVAL, Node.js then treats the handle as closing although it is still open, and the
 * process never exits.
 */
export function resetSocket(socket: Socket): void {
  const isShuttingDown = socket.writableEnded && !socket.writableFinished
  if (isShuttingDown) socket.destroy()
  else socket.resetAndDestroy()
}
