import { once } from 'node:events'
import { connect, createServer, isIP, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../config/config.ts'
import { type Check, type Finding, failure, messageOf, ok } from './check.ts'

/**
 * A port that Postern uses. The check determines whether this user can listen on it and whether Postern is listening on
 * it now.
 */
interface Port {
  setting: string
  host: string
  port: number | undefined
  /** Whether the responding process is Postern. */
  isPostern(address: Address): Promise<boolean>
}

interface Address {
  host: string
  port: number
}

export const portCheck: Check = {
  name: 'ports',
  async run({ settings }) {
    const ports = portsOf(settings).filter(({ port }) => port !== undefined && port !== 0)
    return Promise.all(ports.map((one) => checkPort(one, one.port ?? 0)))
  },
}

function portsOf(settings: Config): Port[] {
  const { host, port, intakeHost, publicUrl, returnPathHost, mxHost } = settings
  const intake = (setting: string, port: number | undefined, name: string, isTls = false): Port => ({
    ...{ setting, host: intakeHost, port },
    isPostern: async (address) => (await greetingAt(address, isTls)).startsWith(`220 ${name} ESMTP`),
  })
  return [
    { setting: 'POSTERN_HTTP_PORT', host, port, isPostern: isApi },
    intake('POSTERN_BOUNCE_PORT', settings.bouncePort, returnPathHost),
    intake('POSTERN_INBOUND_PORT', settings.inboundPort, mxHost),
    intake('POSTERN_SUBMISSION_PORT', settings.submissionPort, publicUrl.hostname),
    intake('POSTERN_SUBMISSIONS_PORT', settings.submissionsPort, publicUrl.hostname, true),
  ]
}

async function checkPort({ setting, host, isPostern }: Port, port: number): Promise<Finding> {
  const where = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  if (!isHere(host)) {
    return failure(
      `${host} is not an address of this machine, so Postern cannot listen on ${where} (${setting}).`,
      'Set POSTERN_HTTP_HOST or POSTERN_INTAKE_HOST to an address of this machine, or to 0.0.0.0 for all addresses.',
    )
  }
  const address = { host: reachable(host), port }
  // Connects before it tries to bind: binding, even briefly, could collide with a Postern process that is starting.
  if (await isAnswered(address)) {
    if (await isPostern(address).catch(() => false))
      return ok(`Postern is listening on ${where} (${setting}).`)
    return failure(
      `Another program is listening on ${where}, the port in ${setting}.`,
      `Stop that program (\`ss -ltnp 'sport = :${port}'\` names it), or change ${setting}.`,
    )
  }
  const fault = await bindFault(host, port)
  if (fault === undefined) return ok(`${where} (${setting}) is free, and this user can listen on it.`)
  return failure(
    `This user cannot listen on ${where} (${setting}): ${fault}.`,
    'Ports below 1024 require a privilege: give the process CAP_NET_BIND_SERVICE, or choose a higher port.',
  )
}

const wildcards: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
const reachable = (host: string): string => wildcards[host] ?? host

function isHere(host: string): boolean {
  if (isIP(host) === 0 || host in wildcards || host.startsWith('127.')) return true
  return Object.values(networkInterfaces())
    .flat()
    .some((found) => found?.address === host)
}

const waitMs = 3_000

async function isAnswered({ host, port }: Address): Promise<boolean> {
  const socket = connect({ host, port, signal: AbortSignal.timeout(waitMs) })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function isApi({ host, port }: Address): Promise<boolean> {
  const authority = isIP(host) === 6 ? `[${host}]` : host
  const answer = await fetch(`http://${authority}:${port}/healthz`, { signal: AbortSignal.timeout(waitMs) })
  return ((await answer.json()) as { status?: unknown }).status === 'ok'
}

/** The first line that the server sends. */
async function greetingAt(address: Address, isTls: boolean): Promise<string> {
  const socket: Socket = isTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address)
  try {
    const [chunk] = await once(socket, 'data', { signal: AbortSignal.timeout(waitMs) })
    return String(chunk)
  } finally {
    socket.destroy()
  }
}

async function bindFault(host: string, port: number): Promise<string | undefined> {
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
    return undefined
  } catch (error) {
    return messageOf(error)
  } finally {
    server.close()
  }
}
