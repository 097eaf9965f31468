import { once } from 'node:events'
import { connect, createServer, isIP, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../config/config.ts'
import { type Check, type Finding, failure, messageOf, ok } from './check.ts'

/** Where Postern listens, or would: whether it may, and whether it is Postern who listens there now. */
interface Door {
  setting: string
  host: string
  port: number | undefined
  /** What whoever opens it hears, if it is ours. */
  isOurs(place: Place): Promise<boolean>
}

interface Place {
  host: string
  port: number
}

export const portCheck: Check = {
  name: 'ports',
  async look({ settings }) {
    const doors = doorsOf(settings).filter(({ port }) => port !== undefined && port !== 0)
    return Promise.all(doors.map((door) => lookAt(door, door.port ?? 0)))
  },
}

function doorsOf(settings: Config): Door[] {
  const { host, port, intakeHost, publicUrl, returnPathHost, mxHost } = settings
  const intake = (setting: string, port: number | undefined, name: string, isTls = false): Door => ({
    ...{ setting, host: intakeHost, port },
    isOurs: async (place) => (await greetingAt(place, isTls)).startsWith(`220 ${name} ESMTP`),
  })
  return [
    { setting: 'POSTERN_HTTP_PORT', host, port, isOurs: isApi },
    intake('POSTERN_BOUNCE_PORT', settings.bouncePort, returnPathHost),
    intake('POSTERN_INBOUND_PORT', settings.inboundPort, mxHost),
    intake('POSTERN_SUBMISSION_PORT', settings.submissionPort, publicUrl.hostname),
    intake('POSTERN_SUBMISSIONS_PORT', settings.submissionsPort, publicUrl.hostname, true),
  ]
}

async function lookAt({ setting, host, isOurs }: Door, port: number): Promise<Finding> {
  const where = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  if (!isHere(host)) {
    return failure(
      `${host} is not an address of this machine, so nothing can listen at ${where} (${setting}).`,
      'Set POSTERN_HTTP_HOST or POSTERN_INTAKE_HOST to an address of this machine, or to 0.0.0.0 for all of them.',
    )
  }
  const place = { host: reachable(host), port }
  // Asked first: a port that is taken for a moment could be in the way of a Postern that just starts.
  if (await isAnswered(place)) {
    const isPostern = await isOurs(place).catch(() => false)
    if (isPostern) return ok(`Postern listens at ${where} (${setting}).`)
    return failure(
      `Somebody else listens at ${where}, where ${setting} would have Postern listen.`,
      `Stop what listens there (\`ss -ltnp 'sport = :${port}'\` names it), or choose another ${setting}.`,
    )
  }
  const fault = await bindFault(host, port)
  if (fault === undefined) return ok(`Nobody listens at ${where} (${setting}), and this user may.`)
  return failure(
    `This user cannot listen at ${where} (${setting}): ${fault}.`,
    'Ports below 1024 need a privilege: give the process CAP_NET_BIND_SERVICE, or choose a higher port.',
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

async function isAnswered({ host, port }: Place): Promise<boolean> {
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

async function isApi({ host, port }: Place): Promise<boolean> {
  const authority = isIP(host) === 6 ? `[${host}]` : host
  const answer = await fetch(`http://${authority}:${port}/healthz`, { signal: AbortSignal.timeout(waitMs) })
  return ((await answer.json()) as { status?: unknown }).status === 'ok'
}

/** The first line, if somebody says one. */
async function greetingAt(place: Place, isTls: boolean): Promise<string> {
  const socket: Socket = isTls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place)
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
