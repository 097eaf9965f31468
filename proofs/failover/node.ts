import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { familyOf, isAlive, killPostgres } from '../../server/src/testing/peers/postgres.ts'
import { type Daemon, startDaemon } from './daemon.ts'
import { type Credentials, getWith } from './mutual-tls.ts'

/** One of three nodes: etcd, Patroni, and the PostgreSQL that Patroni manages. */
export interface NodePlace {
  name: string
  home: string
  ports: { etcd: number; peer: number; rest: number; postgres: number }
  credentials: Credentials
}

/** Configuration shared by all nodes. */
export interface Estate {
  places: readonly NodePlace[]
  passwords: { superuser: string; replication: string; rewind: string; rest: string }
  /** Patroni's configuration. */
  file: string
  /** etcd's configuration, with every address replaced. */
  etcdSettings: Record<string, string>
  /** The folder with PostgreSQL's programs. */
  bin: string
  /** The user that PostgreSQL and the other programs run as. */
  user: { uid: number; gid: number } | undefined
}

export class DatabaseNode {
  readonly place: NodePlace
  readonly #estate: Estate
  #etcd: Daemon | undefined
  #patroni: Daemon | undefined

  constructor(place: NodePlace, estate: Estate) {
    this.place = place
    this.#estate = estate
  }

  get name(): string {
    return this.place.name
  }

  /** The superuser's URL for this node only. */
  get url(): string {
    return `postgres://postgres:${this.#estate.passwords.superuser}@127.0.0.1:${this.place.ports.postgres}/postgres`
  }

  get #data(): string {
    return path.join(this.place.home, 'data')
  }

  startEtcd(): void {
    const { home, ports, name, credentials } = this.place
    const cluster = this.#estate.places.map((place) => `${place.name}=https://127.0.0.1:${place.ports.peer}`)
    this.#etcd = startDaemon('etcd', [], {
      cwd: home,
      log: path.join(home, 'etcd.log'),
      user: this.#estate.user,
      environment: {
        ...this.#estate.etcdSettings,
        ETCD_NAME: name,
        ETCD_DATA_DIR: path.join(home, 'etcd'),
        ETCD_LISTEN_CLIENT_URLS: `https://127.0.0.1:${ports.etcd}`,
        ETCD_ADVERTISE_CLIENT_URLS: `https://127.0.0.1:${ports.etcd}`,
        ETCD_LISTEN_PEER_URLS: `https://127.0.0.1:${ports.peer}`,
        ETCD_INITIAL_ADVERTISE_PEER_URLS: `https://127.0.0.1:${ports.peer}`,
        ETCD_INITIAL_CLUSTER: cluster.join(','),
        ...etcdFiles('ETCD', credentials),
        ...etcdFiles('ETCD_PEER', credentials),
        ETCD_LOGGER: 'zap',
      },
    })
  }

  startPatroni(): void {
    const { home, ports, name, credentials } = this.place
    const { passwords, places, file, bin, user } = this.#estate
    this.#patroni = startDaemon('patroni', [file], {
      cwd: home,
      log: this.log,
      user,
      environment: {
        PATRONI_NAME: name,
        PATRONI_RESTAPI_LISTEN: `127.0.0.1:${ports.rest}`,
        PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${ports.rest}`,
        PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${ports.postgres}`,
        PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${ports.postgres}`,
        PATRONI_POSTGRESQL_DATA_DIR: this.#data,
        PATRONI_POSTGRESQL_BIN_DIR: bin,
        PATRONI_POSTGRESQL_PGPASS: path.join(home, 'pgpass'),
        PATRONI_ETCD3_HOSTS: places.map((place) => `127.0.0.1:${place.ports.etcd}`).join(','),
        PATRONI_ETCD3_CACERT: credentials.ca,
        PATRONI_ETCD3_CERT: credentials.certificate,
        PATRONI_ETCD3_KEY: credentials.key,
        ...patroniFiles('PATRONI_RESTAPI_CAFILE', 'PATRONI_RESTAPI', credentials),
        ...patroniFiles('PATRONI_CTL_CACERT', 'PATRONI_CTL', credentials),
        PATRONI_RESTAPI_USERNAME: 'patroni',
        PATRONI_RESTAPI_PASSWORD: passwords.rest,
        PATRONI_SUPERUSER_PASSWORD: passwords.superuser,
        PATRONI_REPLICATION_PASSWORD: passwords.replication,
        PATRONI_REWIND_PASSWORD: passwords.rewind,
      },
    })
  }

  get log(): string {
    return path.join(this.place.home, 'patroni.log')
  }

  /** Simulates a power failure. Resolves when all processes are gone. */
  async kill(): Promise<void> {
    await this.killPatroni()
    await Promise.all([this.#etcd?.end('SIGKILL'), killPostgres(this.#data)])
  }

  /** Leaves PostgreSQL running without Patroni. */
  async killPatroni(): Promise<void> {
    await this.#patroni?.end('SIGKILL')
  }

  /** Restarts etcd and Patroni. */
  revive(): void {
    if (!this.#etcd?.isRunning()) this.startEtcd()
    if (!this.#patroni?.isRunning()) this.startPatroni()
  }

  /** Pauses all processes except etcd. Connections stay open, and the other end is not notified. */
  async pause(): Promise<void> {
    for (const pid of await this.#everybody()) process.kill(pid, 'SIGSTOP')
  }

  async resume(): Promise<void> {
    for (const pid of await this.#everybody()) process.kill(pid, 'SIGCONT')
  }

  async #everybody(): Promise<number[]> {
    const pids = [this.#patroni?.pid ?? 0, ...(await familyOf(this.#data))]
    const alive = await Promise.all(pids.map(isAlive))
    return pids.filter((_, place) => alive[place])
  }

  /** Terminates all processes, regardless of their state. */
  async end(): Promise<void> {
    await this.resume().catch(() => {})
    await this.#patroni?.end('SIGKILL')
    const [postmaster = 0] = await familyOf(this.#data).catch(() => [])
    if (postmaster > 0 && (await isAlive(postmaster))) await killPostgres(this.#data)
    await this.#etcd?.end('SIGKILL')
  }

  /** The cluster members according to this node's Patroni; undefined if it does not respond. */
  async members(): Promise<Member[] | undefined> {
    const { ports, credentials } = this.place
    const answer = await getWith(credentials, `https://127.0.0.1:${ports.rest}/cluster`)
    return answer === undefined ? undefined : (JSON.parse(answer) as { members: Member[] }).members
  }
}

const etcdFiles = (prefix: string, { ca, certificate, key }: Credentials): Record<string, string> => ({
  [`${prefix}_TRUSTED_CA_FILE`]: ca,
  [`${prefix}_CERT_FILE`]: certificate,
  [`${prefix}_KEY_FILE`]: key,
})

const patroniFiles = (
  authority: string,
  prefix: string,
  { ca, certificate, key }: Credentials,
): Record<string, string> => ({
  [authority]: ca,
  [`${prefix}_CERTFILE`]: certificate,
  [`${prefix}_KEYFILE`]: key,
})

/** A member as represented in Patroni's REST API. */
export interface Member {
  name: string
  role: 'leader' | 'sync_standby' | 'replica' | (string & {})
  state: string
  timeline?: number
}

/** Waits for a condition; the error names it. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = 120_000,
): Promise<void> {
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(100))
    if (await isSo()) return
  throw new Error(`timed out waiting: ${what}`)
}
