import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createConnection, createServer, type Socket } from 'node:net'
import { UsageError } from '../errors.ts'

/**
 * One line of text in, one line out, over a Unix socket: for a process of ours that keeps what others may not have. Who
 * may connect is decided by the group of the socket and the rights of its folder; other users of the machine cannot.
 */
export interface LineSocket {
  /** No new connections; answers under way are still given. */
  close(): Promise<void>
}

/** Beyond these a peer is cut off without an answer. */
export interface LineLimits {
  lineBytes: number
  /** For the request to arrive, from the side that listens; for all of it, from the side that asks. */
  timeoutMs: number
}

const connectionsAtMost = 8
const lineBreak = 0x0a

export async function serveLines(
  path: string,
  { lineBytes, timeoutMs }: LineLimits,
  answer: (line: string) => Promise<string>,
): Promise<LineSocket> {
  await removeStale(path)
  const server = createServer(async (socket) => {
    socket.on('error', () => socket.destroy())
    socket.setTimeout(timeoutMs, () => socket.destroy())
    const line = await readLine(socket, lineBytes).catch(() => undefined)
    if (line === undefined) {
      socket.destroy()
      return
    }
    // What is asked for may take longer than the asking.
    socket.setTimeout(0)
    try {
      socket.end(`${await answer(line)}\n`)
    } catch {
      socket.destroy()
    }
  })
  server.maxConnections = connectionsAtMost
  // The socket is the owner's and the group's from its first moment.
  const umask = process.umask(0o117)
  try {
    server.listen(path)
  } finally {
    process.umask(umask)
  }
  await once(server, 'listening')
  return { close: () => new Promise((resolve) => void server.close(() => resolve())) }
}

export async function askLine(
  path: string,
  line: string,
  { lineBytes, timeoutMs }: LineLimits,
): Promise<string> {
  const socket = createConnection({ path })
  const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  try {
    await once(socket, 'connect')
    socket.write(`${line}\n`)
    const answered = await readLine(socket, lineBytes)
    if (answered === undefined) throw new Error('the connection ended without an answer')
    return answered
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

/** Undefined when there is none, or it is too long. */
async function readLine(socket: Socket, mostBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    const bytes = chunk as Buffer
    const end = bytes.indexOf(lineBreak)
    const part = end === -1 ? bytes : bytes.subarray(0, end)
    length += part.length
    if (length > mostBytes) return undefined
    chunks.push(part)
    if (end !== -1) return Buffer.concat(chunks).toString('utf8')
  }
  return undefined
}

/** A process that was killed leaves its socket behind; one at which somebody listens is not taken over. */
async function removeStale(path: string): Promise<void> {
  const socket = createConnection({ path })
  try {
    await once(socket, 'connect')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED') await rm(path)
    else if (code !== 'ENOENT') throw error
    return
  } finally {
    socket.destroy()
  }
  throw new UsageError(`Another process listens at ${path}.`)
}
