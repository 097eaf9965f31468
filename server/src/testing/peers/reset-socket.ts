import type { Socket } from 'node:net'

/**
 * Closes a connection with a RST. A socket that is shutting down is closed normally, because `uv_tcp_close_reset` would
 * fail with EINVAL. Node.js would then treat the handle as closing even though it is still open, and the process would
 * never exit.
 */
export function resetSocket(socket: Socket): void {
  const isShuttingDown = socket.writableEnded && !socket.writableFinished
  if (isShuttingDown) socket.destroy()
  else socket.resetAndDestroy()
}
