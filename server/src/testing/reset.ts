import type { Socket } from 'node:net'

/**
 * Ends a connection with a RST. A socket that is shutting down is closed instead: Node.js cannot reset it, leaves it open
 * and never ends (`uv_tcp_close_reset` answers EINVAL, and the handle counts as closing from then on).
 */
export function reset(socket: Socket): void {
  const isShuttingDown = socket.writableEnded && !socket.writableFinished
  if (isShuttingDown) socket.destroy()
  else socket.resetAndDestroy()
}
