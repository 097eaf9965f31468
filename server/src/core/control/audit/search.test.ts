import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { searchToEnd } from '../../../testing/harness/search.ts'
import { type AuditSearch, auditBounds, searchAudit } from './audit.ts'

/** Compares random searches with a model that filters all rows one by one. */
const chance = new Chance(seed)
const database = await testDatabase()
const db = openDatabase(database).as('admin')

interface Model {
  id: number
  chain: number
  at: Date
  actor_id: number
  operation: string
  resource_type: string
  resource_id: string
}

const kinds: [operation: string, type: string][] = [
  ['projects.edit', 'project'],
  ['members.create', 'member'],
  ['endpoints.edit', 'endpoint'],
  ['endpoints.rotate', 'endpoint'],
  ['plans.edit', 'plan'],
]
const day = 86_400_000
const start = Date.parse('2026-01-01T00:00:00Z')
const rows = makeRows(300)
await database.query(
  `insert into control.audit (chain, seq, id, at, actor_kind, actor_id, actor_digest, request_id, operation,
                              project_id, resource_type, resource_id, xid, prev_hash, hash)
   select chain, id, id, at, 'person', actor_id, hash, 'r', operation, nullif(chain, 0), resource_type, resource_id,
          pg_current_xact_id(), hash, hash
     from json_to_recordset($1) as rows (id bigint, chain bigint, at timestamptz, actor_id bigint, operation text,
                                         resource_type text, resource_id text),
          decode(repeat('00', 32), 'hex') as hash`,
  [JSON.stringify(rows)],
)

/** Ten rows per day. Within half an hour, the order of times and ids can differ. */
function makeRows(count: number): Model[] {
  return Array.from({ length: count }, (_, index) => {
    const [operation, resource_type] = chance.pick(kinds)
    const at = new Date(start + (index / 10) * day + (chance.happens(0.2) ? chance.below(1_800_000) : 0))
    return {
      id: index + 1,
      chain: operation === 'plans.edit' ? 0 : chance.pick([1, 1, 1, 2, 3]),
      at,
      actor_id: chance.pick([7, 7, 7, 8, 9]),
      operation,
      resource_type,
      resource_id: String(chance.below(4)),
    }
  })
}

function expected({ projectId, actor, operation, resource, from, to }: AuditSearch): number[] {
  return rows
    .filter(({ chain }) => projectId === undefined || chain === projectId)
    .filter(({ actor_id }) => actor === undefined || actor_id === actor)
    .filter((row) => operation === undefined || row.operation === operation)
    .filter(({ resource_type }) => resource === undefined || resource_type === resource[0])
    .filter(({ resource_id }) => resource?.[1] === undefined || resource_id === resource[1])
    .filter(({ at }) => (from === undefined || at >= from) && (to === undefined || at < to))
    .map(({ id }) => id)
    .reverse()
}

const maybe = <T>(make: () => T): T | undefined => (chance.happens(0.5) ? make() : undefined)
const randomTime = () => new Date(start + chance.below(32) * day + chance.below(2) * 600_000)

const randomSearch = (): AuditSearch => ({
  projectId: maybe(() => chance.below(5)),
  actor: maybe(() => 6 + chance.below(4)),
  operation: maybe(() => chance.pick([...kinds.map(([operation]) => operation), 'unknown.operation'])),
  resource: maybe(() => {
    const [, type] = chance.pick(kinds)
    return chance.happens(0.5) ? [type] : [type, String(chance.below(5))]
  }),
  from: maybe(randomTime),
  to: maybe(randomTime),
  limit: chance.pick([3, 10, 50]),
})

const smallBounds = { inIndex: 50, inTable: 10, scanMs: 3 }
const minimalBounds = { inIndex: 1, inTable: 1, scanMs: 0 }

async function assertFound(search: AuditSearch, bounds: typeof auditBounds) {
  const found = await searchToEnd(
    (after) => db.read((tx) => searchAudit(tx, { ...search, beforeId: after?.id }, bounds)),
    search.limit,
  )
  assert.deepEqual(found.ids, expected(search), JSON.stringify({ search, bounds }))
  return found
}

describe('searchAudit', () => {
  test('finds the expected rows, newest first, with any filters and bounds', async (t) => {
    t.diagnostic(`seed ${chance.seed}`)
    let shortPages = 0
    for (let n = 0; n < 60; n++) {
      const bounds = chance.pick([auditBounds, smallBounds, minimalBounds])
      shortPages += (await assertFound(randomSearch(), bounds)).shortPages
    }
    assert.ok(shortPages > 5, `${shortPages} pages were short`)
  })

  test('combines actor, operation and resource type without filtering row by row', async () => {
    for (const operation of [undefined, 'endpoints.edit', 'projects.edit', 'unknown.operation']) {
      for (const resource of [undefined, ['endpoint'] as [string]]) {
        const { shortPages } = await assertFound({ actor: 7, operation, resource, limit: 500 }, minimalBounds)
        assert.equal(shortPages, 0)
      }
    }
  })
})
