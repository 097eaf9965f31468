import assert from 'node:assert/strict'
import type { Static } from 'typebox'
import { workerDeps } from '../../context/context.ts'
import { checkDomain } from '../../core/control/domains/check.ts'
import { reconcileIdentity } from '../../core/control/domains/reconcile-identities.ts'
import type { Domain as DomainSchema } from '../../core/control/domains/wire.ts'
import type { WorkerDeps } from '../../worker/worker.ts'
import { domainRows } from '../fixtures/domain-rows.ts'
import { fixtures } from '../fixtures/fixtures.ts'
import { type DnsRecord, startDns } from '../peers/dns.ts'
import { startSesPeer } from '../peers/ses-peer.ts'
import { startApi } from './api.ts'
import { signedIn } from './client.ts'
import { openDatabase, testDatabase } from './database.ts'

export type Domain = Static<typeof DomainSchema>
type Named = Pick<Domain, 'id' | 'project_id'>

/** External services: a DNS server with published and withdrawn records, and Amazon SES. */
export async function startWorld() {
  const dns = await startDns()
  const ses = await startSesPeer()
  const published = new Map<string, DnsRecord>()
  const keyOf = ({ type, name, value }: DnsRecord) => `${type} ${name} ${value}`
  const writeZone = () => dns.setZone('.', [...published.values()])

  return {
    dns,
    ses,
    settings: {
      ...ses.settings,
      POSTERN_DNS_SERVERS: dns.server,
      POSTERN_MX_HOST: 'mx.postern.test',
      POSTERN_RETURN_PATH_HOST: 'bounces.postern.test',
    },
    async publish(...records: DnsRecord[]): Promise<void> {
      for (const record of records) published.set(keyOf(record), record)
      await writeZone()
    },
    async withdraw(...records: DnsRecord[]): Promise<void> {
      for (const record of records)
        assert.ok(published.delete(keyOf(record)), `${record.name} is not published`)
      await writeZone()
    },
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

/** An installation that uses these external services. Tests call the worker's functions directly. */
export async function startStage(world: World, environment: Record<string, string> = {}) {
  const database = await testDatabase()
  const api = await startApi(database, { ...world.settings, ...environment })
  const admin = await signedIn(api)
  const make = fixtures(database, admin)
  const present = workerDeps(api.context)
  const pathOf = ({ id, project_id }: Named) => `/projects/${project_id}/domains/${id}`

  const show = async (domain: Named): Promise<Domain> => {
    const { status, body, text } = await admin.get(pathOf(domain))
    assert.equal(status, 200, text)
    return body
  }
  const reconcile = async (domain: Named, deps: WorkerDeps = present): Promise<Domain> => {
    await reconcileIdentity(deps, (await show(domain)).identity.id)
    return show(domain)
  }

  return {
    database,
    api,
    admin,
    ...make,
    rows: domainRows(database),
    deps: present,
    pathOf,
    show,
    reconcile,

    /** The same worker, with the database's clock advanced. Existing connections keep the old clock. */
    async later(offset: string): Promise<WorkerDeps> {
      const name = new URL(database.url).pathname.slice(1)
      await database.query(`alter database ${name} set postern.clock_offset = '${offset}'`)
      return { ...present, db: openDatabase(database).as('admin') }
    },

    /** Runs a check, even if it is not due, and returns the updated domain. */
    async check(domain: Named, deps: WorkerDeps = present): Promise<Domain> {
      await database.query(`update control.domains set next_check_at = '-infinity' where id = $1`, [
        domain.id,
      ])
      await checkDomain(deps, domain.project_id, domain.id)
      return show(domain)
    },

    /** A domain that is registered with its provider but not checked yet. */
    async makeRegistered(
      mta_provider: 'service' | 'ses',
      name?: string,
      projectId?: number,
    ): Promise<Domain> {
      const project = projectId ?? (await make.makeProject()).id
      const domain = await make.makeDomain(project, {
        mta_provider,
        ...(name === undefined ? {} : { name }),
      })
      return reconcile(domain)
    },

    /** Stored verification state that the API does not return. Times are seconds since the last check. */
    async verification({ id }: Named): Promise<StoredVerification> {
      const [row] = await database.query<StoredVerification>(
        `select checks_failed, failing_since is not null as is_failing,
                extract(epoch from next_check_at - last_checked_at)::float8 as next_check_seconds
           from control.domains where id = $1`,
        [id],
      )
      return row ?? assert.fail(`no domain ${id}`)
    },

    /** All errors logged so far. */
    errors: () => api.logLines.filter((line) => /^\{"level":"(?:error|fatal)"/.test(line)),
  }
}

export type Stage = Awaited<ReturnType<typeof startStage>>

export interface StoredVerification {
  checks_failed: number
  is_failing: boolean
  next_check_seconds: number | null
}

export const recordsOf = ({ dns_records }: Pick<Domain, 'dns_records'>, purpose: string) =>
  dns_records.filter((record) => record.purpose === purpose)

export const recordOf = (domain: Pick<Domain, 'dns_records'>, purpose: string) =>
  recordsOf(domain, purpose)[0] ?? assert.fail(`no ${purpose} record`)

/** The status of each record, by its purpose. */
export const recordStatuses = ({ dns_records }: Pick<Domain, 'dns_records'>): Record<string, string> =>
  Object.fromEntries(dns_records.map(({ purpose, status }) => [purpose, status]))

export const needed = ({ dns_records }: Pick<Domain, 'dns_records'>) =>
  dns_records.filter(({ purpose }) => ['ownership', 'dkim', 'return_path'].includes(purpose))
