import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { reconcileIdentity } from '../../core/control/domains/reconcile-identities.ts'
import { fixtures } from '../fixtures/fixtures.ts'
import { type Commit, type PostgresProxy, startPostgresProxy } from '../peers/postgres-proxy.ts'
import { type SesCall, type SesPeer, startSesPeer } from '../peers/ses-peer.ts'
import { startApi, type TestApi } from './api.ts'
import { type Answer, Client } from './client.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { bareEnvironment, type PosternProcess, startPosternAll } from './postern-process.ts'
import { eventually, patienceMs } from './waiting.ts'

/**
 * A separate `postern all` process that can be killed at any point in a domain edit and in the work that follows. It
 * reaches its database through a proxy and uses the SES peer. Assertions query the database directly.
 */
export interface KillPoint {
  what: string
  /** Number of earlier occurrences since the edit was requested. */
  occurrence: number
  when: 'before' | 'after' | 'answered'
}

export interface Subject {
  id: number
  project_id: number
  name: string
  identity: { id: number }
  etag: string
  routes: { id: number; address: string | null }[]
}

interface Parts {
  database: TestDatabase
  api: TestApi
  peer: SesPeer
  proxy: PostgresProxy
}

/** Starts and completions of each step since the edit was requested. */
type Seen = Map<string, { begun: number; done: number }>

export class KillLane {
  readonly database: TestDatabase
  readonly api: TestApi
  readonly peer: SesPeer
  readonly #proxy: PostgresProxy
  readonly #env: Record<string, string>
  #postern: PosternProcess | undefined
  #email = ''
  #offsetMinutes = 0
  #isCounting = false
  #seen: Seen = new Map()
  #point: KillPoint | undefined
  /** Every point passed since the last edit was requested. */
  readonly passed: KillPoint[] = []

  private constructor({ database, api, peer, proxy }: Parts, start: Record<string, string>) {
    this.database = database
    this.api = api
    this.peer = peer
    this.#proxy = proxy
    this.#env = {
      ...start,
      AWS_ACCESS_KEY_ID: process.env['AWS_ACCESS_KEY_ID'] ?? '',
      AWS_SECRET_ACCESS_KEY: process.env['AWS_SECRET_ACCESS_KEY'] ?? '',
      ...peer.settings,
      ...secrets,
      POSTERN_DATABASE_URL: proxy.urlOf(database.url),
      POSTERN_HTTP_PORT: '0',
      POSTERN_BOUNCE_PORT: '0',
      // Nothing listens there, so lookups fail immediately.
      POSTERN_DNS_SERVERS: '127.0.0.1:1',
    }
    proxy.hooks.onStatement = (commit) => this.#reached(nameOf(commit), 'before')
    proxy.hooks.onDone = (commit) =>
      this.#reached(nameOf(commit), isEffective(commit) ? 'after' : 'no effect')
    peer.hooks.onRequest = (call) => this.#reachedCall(call, 'before')
    peer.hooks.onEffect = (call) => this.#reachedCall(call, 'after')
    peer.hooks.onAnswer = (call) => this.#reachedCall(call, 'answered')
  }

  static async open(): Promise<KillLane> {
    const peer = await startSesPeer()
    const database = await testDatabase()
    const api = await startApi(database, { ...peer.settings, ...secrets })
    const proxy = await startPostgresProxy(database.url)
    const lane = new KillLane({ database, api, peer, proxy }, bareEnvironment)
    lane.#email = (await api.makeAdmin()).email
    return lane
  }

  /** A client of the in-process API, which is never killed. */
  async direct(): Promise<Client> {
    return new Client(this.api.url, await this.api.tokenOf(this.#email))
  }

  async start(): Promise<void> {
    this.#postern = await startPosternAll(this.#env)
  }

  /** Creates domains with registered identities, each with two address routes and a catch-all route. */
  async prepare(count: number, mta_provider: 'ses' | 'service'): Promise<Subject[]> {
    const admin = await this.direct()
    const make = fixtures(this.database, admin)
    const { id: project_id } = await make.makeProject()
    await make.allowServiceMta(project_id)
    const { db, cells, providers, log } = this.api.context
    const subjects: Subject[] = []
    for (let n = 0; n < count; n++) {
      const { id, name, identity } = await make.makeDomain(project_id, { mta_provider })
      await reconcileIdentity({ db: db.admin, mailOf: cells.mailOf, providers, log }, identity.id)
      const at = { domain_id: id, match: 'address' as const }
      const routes = [
        await make.makeRoute(project_id, { ...at, address: `info@${name}`, action: 'drop' }),
        await make.makeRoute(project_id, { ...at, address: `sales@${name}`, is_active: false }),
      ]
      await make.makeRoute(project_id, { domain_id: id })
      const { headers } = await admin.get(`/projects/${project_id}/domains/${id}`)
      const etag = headers.get('etag') ?? assert.fail()
      subjects.push({ id, project_id, name, identity, etag, routes })
    }
    await this.#dropJobs()
    return subjects
  }

  /** Removes the jobs created by the preparation, or waits for those that are already active. */
  async #dropJobs(): Promise<void> {
    await eventually('the jobs of the preparation are done', async () => {
      await this.database.query(
        `delete from jobs.job where name = $1 and state not in ('active', 'completed')`,
        [queue],
      )
      return !(await this.hasJobs(`state <> 'completed'`))
    })
    await sleep(50)
  }

  async hasJobs(condition: string): Promise<boolean> {
    const query = `select from jobs.job where name = $1 and ${condition}`
    return (await this.database.query(query, [queue])).length > 0
  }

  /**
   * Waits until the new process has run all pending jobs, then deletes the jobs that the killed process left
   * active.
   */
  async forgetJobs(): Promise<void> {
    await eventually('no job is pending', async () => !(await this.hasJobs(`state in ('created', 'retry')`)))
    await sleep(100)
    await this.database.query('delete from jobs.job where name = $1', [queue])
  }

  /** Sends the edit to the process. Returns undefined if the process was killed before it responded. */
  async edit({ project_id, id, etag }: Subject, body: object): Promise<Answer | undefined> {
    const { url } = this.#postern ?? assert.fail('the process is not running')
    const client = new Client(url, await this.api.tokenOf(this.#email))
    // The job queue is ready shortly after the HTTP server.
    const { answer } = await eventually('the process accepts the edit', async () => {
      const request = client.patch(`/projects/${project_id}/domains/${id}`, body, { 'if-match': etag })
      const answer = await request.catch(() => undefined)
      return answer?.status !== 503 && { answer }
    })
    return answer
  }

  /** Starts counting points. The process is killed at the specified point. */
  watch(point?: KillPoint): void {
    this.#point = point
    this.#seen = new Map()
    this.passed.length = 0
    this.#isCounting = true
  }

  /** Waits until the process has been killed at the specified point, then rolls back its open transactions. */
  async died(): Promise<void> {
    const late = sleep(patienceMs, 'late', { ref: false })
    const outcome = await Promise.race([this.#postern?.exited, late])
    assert.notEqual(outcome, 'late', `${describePoint(this.#point)} was not reached`)
    this.#isCounting = false
    await this.#proxy.cut()
  }

  /** Restarts the process after the killed process's leases have expired. */
  async revive(): Promise<void> {
    this.#isCounting = false
    this.#offsetMinutes += 2
    const name = new URL(this.database.url).pathname.slice(1)
    await this.database.query(
      `alter database ${name} set postern.clock_offset = '${this.#offsetMinutes} minutes'`,
    )
    await this.start()
  }

  async stop(): Promise<void> {
    this.#isCounting = false
    this.#postern?.kill()
    await this.#postern?.exited
  }

  get log(): string {
    return this.#postern?.lines.join('\n') ?? ''
  }

  #reachedCall({ kind, domain }: SesCall, when: KillPoint['when']): void {
    // Reads do not change anything.
    if (kind === 'get') return
    if (this.#reached(`SES ${kind}`, when)) throw new Error(`killed over ${domain}`)
  }

  /** Returns true if the process was killed at this point. */
  #reached(what: string, when: KillPoint['when'] | 'no effect'): boolean {
    if (!this.#isCounting || !concernsEdit(what, this.#seen)) return false
    const seen = this.#seen.get(what) ?? { begun: 0, done: 0 }
    this.#seen.set(what, seen)
    if (when === 'no effect') {
      seen.begun = Math.max(seen.done, seen.begun - 1)
      return false
    }
    const occurrence = when === 'before' ? seen.begun++ : when === 'after' ? seen.done++ : seen.done - 1
    const point = { what, occurrence, when }
    if (when === 'after') this.passed.push({ ...point, when: 'before' })
    if (when !== 'before') this.passed.push(point)
    if (this.#point === undefined || describePoint(point) !== describePoint(this.#point)) return false
    this.#isCounting = false
    this.#postern?.kill()
    return true
  }
}

/** False for a poll that found no jobs. */
const isEffective = ({ tag }: Commit): boolean => !/ 0$/.test(tag)

const editCommit = 'commit of the edit'
const queue = 'identities.reconcile'

/** A name for the step that is the same in every run. */
function nameOf({ what, text, values }: Commit): string {
  if (/insert control\.audit\b/.test(what) && what.includes('control.domains')) return editCommit
  if (!text.includes(queue) && !values.includes(queue)) return what
  return `${what} (${queue}, ${/completed_on =/.test(text) ? 'done' : 'begun'})`
}

/** Ignores everything before the commit of the edit, and unrelated work afterwards. */
const concernsEdit = (what: string, seen: Seen): boolean =>
  what === editCommit ||
  (seen.get(editCommit)?.done === 1 && (/control\.identities|^SES /.test(what) || what.includes(queue)))

export const describePoint = (point: KillPoint | undefined): string =>
  point ? `${point.what} no. ${point.occurrence + 1}, ${point.when}` : 'nothing'

const secrets = {
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}
