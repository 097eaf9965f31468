import assert from 'node:assert/strict'
import type { Static } from 'typebox'
import type { ReconcileDeps } from '../../core/control/domains/reconcile-identities.ts'
import type { Domain } from '../../core/control/domains/wire.ts'
import type { IdentityProvider } from '../../providers/sending-identities.ts'
import { fixtures } from '../fixtures/fixtures.ts'
import { type SesPeer, startSesPeer } from '../peers/ses-peer.ts'
import { startApi, type TestApi } from './api.ts'
import { type Client, signedIn } from './client.ts'
import { openCells, openDatabase, type TestDatabase, testDatabase } from './database.ts'

/** An API with the SES peer and without a worker: tests reconcile explicitly. */
export interface ReconcileHarness {
  database: TestDatabase
  api: TestApi
  admin: Client
  peer: SesPeer
  deps: ReconcileDeps
  make: ReturnType<typeof fixtures>
  /** The same worker, with the clock advanced by the specified time. Connections opened earlier keep the old clock. */
  after(time: string): Promise<ReconcileDeps>
}

export async function startReconcileHarness(): Promise<ReconcileHarness> {
  const peer = await startSesPeer()
  const database = await testDatabase()
  const api = await startApi(database, { ...peer.settings, POSTERN_DATABASE_POOL_SIZE: '10' })
  const admin = await signedIn(api)
  const { providers, log, db, cells } = api.context
  const deps = { db: db.admin, mailOf: cells.mailOf, providers, log }
  const name = new URL(database.url).pathname.slice(1)
  let passed = "'0'::interval"
  return {
    database,
    api,
    admin,
    peer,
    deps,
    make: fixtures(database, admin),
    async after(time) {
      passed = `${passed} + '${time}'::interval`
      const [row] = await database.query<{ offset: string }>(`select (${passed})::text as offset`)
      await database.query(`alter database ${name} set postern.clock_offset = '${row?.offset}'`)
      return { ...deps, db: openDatabase(database).as('admin'), mailOf: openCells(database).mailOf }
    },
  }
}

export interface StoredIdentity {
  id: number
  domain_id: number | null
  name: string
  provider: string
  state: string
  last_error: string | null
  attempts: number
  /** The time from the last change to the next attempt. */
  wait_seconds: number | null
  is_leased: boolean
  is_living: boolean
}

export const identitiesOf = (database: TestDatabase, name: string): Promise<StoredIdentity[]> =>
  database.query<StoredIdentity>(
    `select id::int, domain_id::int, name, provider, state, last_error, attempts,
            extract(epoch from reconcile_at - updated_at)::int as wait_seconds,
            leased_until is not null as is_leased, retiring_at is null as is_living
       from control.identities where name = $1 order by id`,
    [name],
  )

export const deedsOf = ({ deeds }: SesPeer, name: string): string[] =>
  deeds.filter(({ domain }) => domain === name).map(({ kind }) => kind)

/** The names registered with the peer, according to the calls that took effect. */
export const namesAt = (peer: SesPeer): string[] =>
  [...new Set(peer.deeds.map(({ domain }) => domain))].filter((domain) => peer.has(domain)).sort()

/** Asserts that `dns_records` contains three CNAME records with the peer's current tokens. */
export function assertAliases(peer: SesPeer, { name, dns_records }: Static<typeof Domain>): void {
  const names = dns_records.filter(({ type }) => type === 'CNAME').map((record) => record.name)
  const expected = peer.tokens(name).map((token) => `${token}._domainkey.${name}`)
  assert.deepEqual(names.sort(), expected.sort())
}

/** Counts the maximum number of concurrent calls for one name. */
export function watched(deps: ReconcileDeps): { deps: ReconcileDeps; most: () => number } {
  const underWay = new Map<string, number>()
  let most = 0
  const watch = async <T>(name: string, call: Promise<T>): Promise<T> => {
    const count = (underWay.get(name) ?? 0) + 1
    underWay.set(name, count)
    most = Math.max(most, count)
    return call.finally(() => underWay.set(name, (underWay.get(name) ?? 0) - 1))
  }
  const ses = deps.providers.ses ?? assert.fail()
  const provider: IdentityProvider = {
    name: ses.name,
    location: ses.location,
    register: (name) => watch(name, ses.register(name)),
    deregister: (name) => watch(name, ses.deregister(name)),
    describe: (name) => ses.describe(name),
    close: () => ses.close(),
  }
  return { deps: { ...deps, providers: { ...deps.providers, ses: provider } }, most: () => most }
}
