import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createConnection, createServer, type Socket } from 'node:net'
import { UsageError } from '../errors.ts'

/**
 * A request-response protocol over a Unix socket, one line each way, for a process that holds secrets. The socket's group
 * and its directory's permissions control access; other users on the machine cannot connect.
 */
export interface LineSocket {
  /** Accepts no new connections; pending responses are still sent. */
  close(): Promise<void>
}

/** If a peer exceeds a limit, its connection is closed without a response. */
export interface LineLimits {
  lineBytes: number
  /** On the server: until the request has arrived. On the client: for the whole exchange. */
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
    // The timeout covers only the request; the response may take longer.
    socket.setTimeout(0)
    try {
      socket.end(`${await answer(line)}\n`)
    } catch {
      socket.destroy()
    }
  })
  server.maxConnections = connectionsAtMost
  // The umask restricts the socket to owner and group from its creation.
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
  const timer = setTimeout(() => socket.destroy(new Error(`no response within ${timeoutMs} ms`)), timeoutMs)
  try {
    await once(socket, 'connect')
    socket.write(`${line}\n`)
    const answered = await readLine(socket, lineBytes)
    if (answered === undefined) throw new Error('the connection closed without a response')
    return answered
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

/** Undefined if there is no line or it is too long. */
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

/** Removes the socket of a killed process. Fails if another process is listening on it. */
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
  throw new UsageError(`Another process is listening on ${path}.`)
}
