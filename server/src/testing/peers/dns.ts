import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createResolver } from '../../platform/net/dns.ts'
import { cleanUp } from '../harness/cleanup.ts'
import { killOnExit } from '../harness/kill-on-exit.ts'
import { newPartLog } from '../harness/part-logs.ts'
import { patienceMs } from '../harness/waiting.ts'
import { steadyPort } from './steady-port.ts'

/**
 * A private authoritative DNS server (Knot) on a free loopback port. On Debian: apt-get install knot. A name
 * without records in one of its zones is NXDOMAIN; queries for names outside all zones are refused. The zone `.`
 * contains every name.
 */
export interface TestDns {
  /** For POSTERN_DNS_SERVERS. */
  server: string
  serverIpv6: string
  /** Replaces the content of a zone with these records (or lines of a zone file). Creates the zone if necessary. */
  setZone(zone: string, records: DnsRecord[] | string): Promise<void>
  /** Makes the server return SERVFAIL for every name in the zone until the zone is set again. */
  breakZone(zone: string): Promise<void>
  /** Makes the server accept queries without answering them until it is resumed. */
  pause(): Promise<void>
  resume(): void
}

/**
 * In the same form as a domain's `dns_records`: the full name, a TXT value of any length, an MX value such as `10
 * mx.example.com`.
 */
export interface DnsRecord {
  name: string
  type: 'A' | 'AAAA' | 'CNAME' | 'MX' | 'TXT'
  value: string
}

const run = promisify(execFile)

// Debian installs it in a directory that is only on root's PATH.
const env = { PATH: `${process.env['PATH']}:/usr/sbin` }

export async function startDns(zones: Record<string, DnsRecord[]> = { '.': [] }): Promise<TestDns> {
  const home = await mkdtemp(path.join(tmpdir(), 'postern-knot-'))
  const port = await steadyPort()
  const configuration = path.join(home, 'knot.conf')
  const known: string[] = []
  let serial = 0

  // Rewriting and reloading a zone takes 12 ms, a transaction over the control socket 30 ms.
  const control = (...args: string[]) => run('knotc', ['-c', configuration, '-b', '-f', ...args], { env })
  const write = async (zone: string, records: DnsRecord[] | string): Promise<number> => {
    if (!known.includes(zone)) known.push(zone)
    const own = ++serial
    await writeFile(path.join(home, zoneFile(zone)), zoneText(zone, records, own))
    return own
  }

  await mkdir(path.join(home, 'state'))
  for (const [zone, records] of Object.entries(zones)) await write(zone, records)
  await writeFile(configuration, configurationText(home, port, known))
  const knot = await startKnot(configuration)
  cleanUp(async () => {
    await stopKnot(knot)
    await rm(home, { recursive: true, force: true })
  })

  const server = `127.0.0.1:${port}`
  for (const [index, zone] of known.entries()) await answers(server, zone, index + 1)
  return {
    server,
    serverIpv6: `[::1]:${port}`,
    async setZone(zone, records) {
      const isNew = !known.includes(zone)
      const written = await write(zone, records)
      if (isNew) {
        await writeFile(configuration, configurationText(home, port, known))
        await control('reload')
      } else {
        await control('zone-reload', zone)
      }
      await answers(server, zone, written)
    },
    // A zone that fails to load keeps its previous content. Only an expired zone returns SERVFAIL.
    async breakZone(zone) {
      await control('zone-purge', zone)
      await answers(server, zone, 'ESERVFAIL')
    },
    async pause() {
      knot.kill('SIGSTOP')
      // The signal takes effect after a delay. Until then, Knot would still answer queries.
      while (!(await isStopped(knot))) await sleep(1)
    },
    resume: () => void knot.kill('SIGCONT'),
  }
}

/** proc(5): the state follows the name in parentheses. */
async function isStopped({ pid }: ChildProcess): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`)
  const states = await Promise.all(
    threads.map(
      async (thread) => (await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8')).split(') ')[1]?.[0],
    ),
  )
  return states.every((state) => state === 'T')
}

/** On a busy machine Knot reports success up to 100 ms before its answers change. */
async function answers(server: string, zone: string, expected: number | 'ESERVFAIL'): Promise<void> {
  const channel = new Resolver({ timeout: 1000, tries: 1 })
  channel.setServers([server])
  let seen: unknown
  for (let attempt = 0; attempt < 500; attempt++) {
    seen = await channel.resolveSoa(zone).then(
      ({ serial }) => serial,
      (error: NodeJS.ErrnoException) => error.code,
    )
    if (seen === expected) return
    await sleep(10)
  }
  throw new Error(`Knot DNS answers ${seen} for ${zone}, not ${expected}`)
}

async function startKnot(configuration: string): Promise<ChildProcess> {
  const knot = spawn('knotd', ['-c', configuration], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  killOnExit(knot)
  const log: string[] = []
  const kept = newPartLog('knot')
  await new Promise<void>((resolve, reject) => {
    knot.once('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT'
      reject(isMissing ? new Error('Knot DNS is not installed. On Debian: apt-get install knot') : error)
    })
    knot.once('exit', () => reject(new Error(`Knot DNS did not start:\n${log.join('\n')}`)))
    createInterface(knot.stderr as NodeJS.ReadableStream).on('line', (line) => {
      log.push(line)
      kept.append(`${line}\n`)
      // Knot logs this line last and then accepts control commands.
      if (line.includes('control, binding to')) resolve()
    })
  })
  return knot
}

async function stopKnot(knot: ChildProcess): Promise<void> {
  if (knot.exitCode !== null || knot.signalCode !== null) return
  const gone = new Promise((resolve) => knot.once('exit', resolve))
  knot.kill('SIGKILL')
  await gone
}

const zoneFile = (zone: string): string => (zone === '.' ? 'root.zone' : `${zone}.zone`)

const absolute = (name: string): string => (name.endsWith('.') ? name : `${name}.`)

/** A long TTL, so that tests notice cached answers. */
function zoneText(zone: string, records: DnsRecord[] | string, serial: number): string {
  const origin = absolute(zone)
  const lines =
    typeof records === 'string'
      ? [records]
      : records.map(({ name, type, value }) => `${absolute(name)} 3600 ${type} ${dataOf(type, value)}`)
  return [
    `${origin} 3600 SOA ns.invalid. hostmaster.invalid. ${serial} 3600 600 86400 3600`,
    `${origin} 3600 NS ns.invalid.`,
    ...lines,
    '',
  ].join('\n')
}

function dataOf(type: DnsRecord['type'], value: string): string {
  if (type === 'A' || type === 'AAAA') return value
  if (type !== 'TXT') return absolute(value)
  const chunks = value.match(/.{1,255}/gs) ?? ['']
  return chunks.map((chunk) => `"${chunk.replace(/["\\]/g, '\\$&')}"`).join(' ')
}

const configurationText = (home: string, port: number, zones: string[]): string => `
server:
    rundir: ${home}
    listen: [127.0.0.1@${port}, ::1@${port}]
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: ${home}/state
log:
  - target: stderr
    any: info
template:
  - id: default
    storage: ${home}
    semantic-checks: off
    journal-content: none
    zonefile-sync: -1
    zonefile-load: whole
zone:
${zones.map((zone) => `  - domain: "${zone}"\n    file: ${zoneFile(zone)}`).join('\n')}
`

/** Queries the server as an external resolver would, for example Amazon's. */
export const resolverAt = (server: string) =>
  createResolver({ servers: [server], timeoutMs: patienceMs, tries: 2 })
