import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import {
  type Cluster,
  findBinaries,
  giveToPostgres,
  postgresUser,
} from '../../server/src/testing/peers/postgres.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'
import { type Daemon, startDaemon } from './daemon.ts'
import { credentialsIn, getWith } from './mutual-tls.ts'
import { DatabaseNode, type Estate, type Member, type NodePlace, until } from './node.ts'

/**
 * Three PostgreSQL servers under Patroni and etcd, behind HAProxy, all on the loopback interface. The configuration
 * comes from deploy/patroni; only addresses, paths and passwords differ. On Debian: apt-get install patroni etcd-server
 * haproxy.
 */
export interface Trio extends Cluster {
  nodes: readonly DatabaseNode[]
  /** The cluster members, as reported by the first node that responds. */
  members(): Promise<Member[]>
  /** The node with this role, if any. */
  find(role: Member['role']): Promise<DatabaseNode | undefined>
}

const deployed = path.resolve(import.meta.dirname, '../../deploy/patroni')

export async function startTrio(home: string): Promise<Trio> {
  const estate = await layOut(home)
  const nodes = estate.places.map((place) => new DatabaseNode(place, estate))
  let haproxy: Daemon | undefined
  const stop = async (): Promise<void> => {
    await haproxy?.end('SIGKILL')
    await Promise.all(nodes.map((node) => node.end()))
  }
  try {
    for (const node of nodes) node.startEtcd()
    await until(() => isHealthy(estate), 'etcd answers')
    for (const node of nodes) node.startPatroni()
    const port = await steadyPort()
    haproxy = await startHaproxy(home, estate, port)
    const trio = meet(nodes, `postgres://postgres:${estate.passwords.superuser}@127.0.0.1:${port}/postgres`)
    await until(async () => isWell(await trio.members()), 'all three nodes have their roles')
    await until(() => answers(trio.url), 'HAProxy finds the primary')
    await refusesStrangers(estate)
    return { ...trio, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Whether there is a primary with two standbys on one timeline, one of them synchronous. */
export function isWell(members: readonly Member[]): boolean {
  const roles = members.map(({ role }) => role).sort()
  return (
    roles.join(' ') === 'leader replica sync_standby' &&
    members.every(({ state }) => state === 'running' || state === 'streaming') &&
    new Set(members.map(({ timeline }) => timeline)).size === 1
  )
}

function meet(nodes: readonly DatabaseNode[], url: string): Omit<Trio, 'stop'> {
  const members = async (): Promise<Member[]> => {
    for (const node of nodes) {
      const found = await node.members()
      if (found && found.length > 0) return found
    }
    return [{ name: 'none', role: 'none', state: 'unreachable' }]
  }
  const find: Trio['find'] = async (role) => {
    const name = (await members()).find((member) => member.role === role)?.name
    return nodes.find((node) => node.name === name)
  }
  const never = (): Promise<never> => Promise.reject(new Error('not supported by a cluster of three nodes'))
  return { url, nodes, members, find, kill: never, start: never, isRunning: async () => true }
}

async function layOut(home: string): Promise<Estate> {
  const places: NodePlace[] = []
  for (const name of ['pg1', 'pg2', 'pg3']) {
    const [etcd, peer, rest, postgres] = [
      await steadyPort(),
      await steadyPort(),
      await steadyPort(),
      await steadyPort(),
    ]
    const credentials = credentialsIn(path.join(home, 'tls', name))
    places.push({ name, home: path.join(home, name), ports: { etcd, peer, rest, postgres }, credentials })
  }
  for (const place of [home, ...places.map((node) => node.home)]) {
    await mkdir(place, { recursive: true, mode: 0o700 })
    await giveToPostgres(place)
  }
  await makeCertificates(path.join(home, 'tls'), places)
  const secret = (): string => randomBytes(12).toString('hex')
  return {
    places,
    passwords: { superuser: secret(), replication: secret(), rewind: secret(), rest: secret() },
    file: await copy(home, 'patroni.yml', { '/var/run/postgresql': home }),
    etcdSettings: settingsIn(await readFile(path.join(deployed, 'etcd.env'), 'utf8')),
    bin: await findBinaries(),
    user: await postgresUser(),
  }
}

/** Uses the operator's script. Each machine's files belong to the PostgreSQL user. */
async function makeCertificates(folder: string, places: readonly NodePlace[]): Promise<void> {
  const script = path.join(deployed, 'make-certificates.sh')
  await promisify(execFile)(script, [folder, ...places.map(({ name }) => `${name}=127.0.0.1`)])
  await giveToPostgres(folder)
  for (const { credentials } of places)
    for (const file of [path.dirname(credentials.ca), ...Object.values(credentials)])
      await giveToPostgres(file)
}

async function startHaproxy(home: string, { places }: Estate, port: number): Promise<Daemon> {
  const replaced = {
    '127.0.0.1:5000': `127.0.0.1:${port}`,
    '/etc/haproxy/patroni': path.join(home, 'tls/haproxy'),
  }
  for (const [index, { ports }] of places.entries())
    Object.assign(replaced, {
      [`10.0.0.1${index + 1}:5432 check port 8008`]: `127.0.0.1:${ports.postgres} check port ${ports.rest}`,
    })
  const file = await copy(home, 'haproxy.cfg', replaced)
  return startDaemon('haproxy', ['-db', '-f', file], { cwd: home, log: path.join(home, 'haproxy.log') })
}

/** Copies a file from deploy/ with replacements. Each replaced text must occur in the file. */
async function copy(home: string, name: string, replaced: Record<string, string>): Promise<string> {
  let content = await readFile(path.join(deployed, name), 'utf8')
  for (const [what, by] of Object.entries(replaced)) {
    if (!content.includes(what)) throw new Error(`deploy/patroni/${name} does not contain ${what}`)
    content = content.replaceAll(what, by)
  }
  const file = path.join(home, name)
  await writeFile(file, content, { mode: 0o644 })
  return file
}

/** Parses lines such as NAME=value. */
const settingsIn = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )

async function isHealthy({ places }: Estate): Promise<boolean> {
  const found = await Promise.all(
    places.map(async ({ ports, credentials }) => {
      const answer = await getWith(credentials, `https://127.0.0.1:${ports.etcd}/health`)
      return answer !== undefined
    }),
  )
  return !found.includes(false)
}

/** Clients without a cluster certificate must not be able to reach etcd or Patroni, over HTTP or HTTPS. */
async function refusesStrangers({ places }: Estate): Promise<void> {
  for (const { ports, credentials } of places)
    for (const [what, address] of [
      ['etcd', `127.0.0.1:${ports.etcd}/health`],
      ['Patroni', `127.0.0.1:${ports.rest}/cluster`],
    ]) {
      const plain = await fetch(`http://${address}`).catch(() => undefined)
      const nameless = await getWith({ ca: credentials.ca }, `https://${address}`)
      if (plain?.ok || nameless !== undefined)
        throw new Error(`${what} accepts clients without a certificate at ${address}`)
    }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}
