import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { addressesBeside, withAuditAddresses } from '../../testing/expectations/audit-row.ts'
import {
  type Act,
  type Expected,
  type ModelState,
  perform,
} from '../../testing/expectations/project-model.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { RandomActs } from '../../testing/fixtures/random-acts.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { Chance, seed } from '../../testing/harness/random.ts'

/**
 * Domains are renamed while many concurrent callers read, create, edit and delete their routes and bind keys to them.
 * A project's changes are serialized in the order of its audit chain. When they are replayed in that order in a
 * model, each must have returned the model's response. A request without an audit row (a read or a rejected request)
 * must match the model at some point in its round: no caller sees a half-renamed domain.
 */
const rounds = Number(process.env['POSTERN_TEST_ROUNDS'] ?? 150)
const laneCount = 8

const database = await testDatabase()
const api = await startApi(database, { POSTERN_DATABASE_POOL_SIZE: '16' })
const admins = [await signedIn(api), await signedIn(api), await signedIn(api)]
const [admin = assert.fail()] = admins
const { makeProject, allowServiceMta } = fixtures(database, admin)

const tally = { acts: 0, changes: 0, renames: 0, moved: 0, refusals: 0, reads: 0, stale: 0, unavailable: 0 }

describe('a domain renamed under load', () => {
  test(`responds as if requests were serialized, in ${rounds} rounds (seed ${seed})`, async (t) => {
    let left = rounds
    await Promise.all(
      Array.from({ length: laneCount }, async (_, number) => {
        const lane = await openLane(number)
        while (left-- > 0) await playRound(lane)
      }),
    )
    t.diagnostic(JSON.stringify({ seed, rounds, mismatches: 0, ...tally }))
    assert.deepEqual(await strayAddresses(), [])
    assert.ok(tally.renames > rounds / 4 && tally.moved > rounds / 4, 'too few renames to prove anything')
    // On a busy machine the wait for the project's lock may time out. The request must not fail for any other reason.
    const failures = api.logLines.filter((line) => line.includes('"level":"error"'))
    assert.deepEqual(
      failures.filter((line) => !line.includes('timeout')),
      [],
    )
    assert.equal(failures.length, tally.unavailable)
    assert.ok(
      tally.refusals > rounds / 4 && tally.stale > rounds / 100,
      'too few concurrent requests to prove anything',
    )
  })
})

interface Lane {
  project: number
  acts: RandomActs
  state: ModelState
  /** The position in the audit chain. */
  seq: number
}

interface Outcome {
  act: Act
  answer: Answer
  requestId: string
}

async function openLane(number: number): Promise<Lane> {
  const { id: project } = await makeProject()
  await allowServiceMta(project)
  const names = Array.from({ length: 9 }, (_, n) => `n${n}.lane${number}.example.org`)
  const acts = new RandomActs(new Chance(seed + number), names)
  const [head] = await rowsAfter(project, 0).then((rows) => rows.slice(-1))
  return { project, acts, state: { domains: [], routes: [], keys: [] }, seq: head?.seq ?? 0 }
}

async function playRound(lane: Lane): Promise<void> {
  const outcomes = await Promise.all(lane.acts.round(lane.state).map((act, n) => send(lane, act, n)))
  const rows = await rowsAfter(lane.project, lane.seq)
  const story = `seed ${seed}\n${outcomes.map(tell).join('\n')}\n${JSON.stringify(rows, null, 1)}`
  const states = [lane.state]
  for (const row of rows) {
    const outcome = outcomes.find(({ requestId }) => requestId === row.request_id)
    assert.ok(outcome, `an audit row without a request: ${story}`)
    const before = states.at(-1) ?? assert.fail()
    const expected = perform(
      before,
      outcome.act,
      outcome.answer.body?.resource?.id ?? outcome.answer.body?.id,
    )
    const mismatch = mismatchOf(outcome.answer, expected) ?? auditMismatch(row, outcome.act, expected)
    assert.equal(mismatch, undefined, `${tell(outcome)}\nafter ${JSON.stringify(before)}\n${story}`)
    assert.notEqual(expected.next, before, `an audit row without a change: ${story}`)
    states.push(expected.next)
    note(outcome.act, expected)
  }
  for (const outcome of outcomes) {
    if (rows.some(({ request_id }) => request_id === outcome.requestId)) continue
    if (outcome.answer.status === 503) {
      tally.unavailable++
      continue
    }
    const mismatches = states.map((state) => unrecordedMismatch(outcome, state))
    assert.ok(mismatches.includes(undefined), `${tell(outcome)}\n${mismatches.join('\n')}\n${story}`)
    tally[outcome.answer.status < 300 ? 'reads' : 'refusals']++
    if (outcome.answer.status === 412) tally.stale++
  }
  tally.acts += outcomes.length
  lane.state = states.at(-1) ?? assert.fail()
  lane.seq = rows.at(-1)?.seq ?? lane.seq
  assert.deepEqual(await storedState(lane.project), sorted(lane.state), story)
}

function note(act: Act, { moves }: Expected): void {
  tally.changes++
  if (act.kind === 'domains.edit') tally.renames++
  tally.moved += moves.length
}

const tell = ({ act, answer, requestId }: Outcome): string =>
  `${requestId} ${JSON.stringify(act)} → ${answer.status} ${answer.headers.get('etag')} ${answer.text.slice(0, 2000)}`

const paths = { domains: 'domains', routing: 'routing', 'api-keys': 'api-keys' }
const methods = { list: 'GET', show: 'GET', create: 'POST', edit: 'PATCH', delete: 'DELETE' }

async function send({ project }: Lane, act: Act, n: number): Promise<Outcome> {
  const [noun, verb] = act.kind.split('.') as [keyof typeof paths, keyof typeof methods]
  const item = 'id' in act ? `/${act.id}` : ''
  const query = 'isDryRun' in act && act.isDryRun ? '?dry_run=true' : verb === 'list' ? '?limit=200' : ''
  const client = admins[n % admins.length] ?? admin
  const answer = await client.request(
    methods[verb],
    `/projects/${project}/${paths[noun]}${item}${query}`,
    methods[verb] === 'GET' ? undefined : { ...bodyOf(act), reason: 'By chance' },
    'ifMatch' in act ? { 'if-match': `"${act.ifMatch}"` } : {},
  )
  return { act, answer, requestId: answer.headers.get('x-request-id') ?? '' }
}

const wholeKey = { scopes: ['messages:send'], allowed_ips: [], expires_at: null, is_active: true }

function bodyOf(act: Act): object {
  if (act.kind === 'api-keys.create') return { mode: 'live', ...wholeKey, ...act.body }
  if (act.kind === 'api-keys.edit') return { ...wholeKey, ...act.body }
  return 'body' in act ? act.body : {}
}

/** The difference between a response and the model, if any. */
function mismatchOf({ status, headers, body }: Answer, { status: wanted, errors, shown }: Expected) {
  if (errors.length > 0) {
    if (wanted !== 0 && status !== wanted) return `the model rejects with ${wanted}`
    return [409, 404, 412, 422].includes(status) && errors.includes(body?.error)
      ? undefined
      : `the model rejects with ${errors.join(' or ')}`
  }
  if (status !== wanted) return `the model returns ${wanted}`
  if (shown === null) return undefined
  if (Array.isArray(shown)) {
    const all = body.data.map((one: object) => seen(one))
    const listed = shown.map(({ version: _, ...thing }) => thing)
    return isDeepStrictEqual(all, listed) ? undefined : `the model shows ${JSON.stringify(listed)}`
  }
  const { version, ...thing } = shown as { version: number }
  const isSame =
    headers.get('etag') === `"${version}"` && isDeepStrictEqual(seen(body.resource ?? body), thing)
  return isSame ? undefined : `the model shows ${JSON.stringify(shown)}`
}

/** The state in the model. */
// biome-ignore lint/suspicious/noExplicitAny: any response.
function seen(body: any): object {
  if ('dns_records' in body) return seenDomain(body)
  if ('prefix' in body) return { id: body.id, name: body.name, domain_id: body.domain_id }
  const { project_id: _, created_at: __, updated_at: ___, forward_confirmed_at: ____, ...route } = body
  return route
}

// biome-ignore lint/suspicious/noExplicitAny: any response.
function seenDomain({ id, name, mta_provider, status, identity, dns_records }: any): object {
  const isWhole =
    status === 'pending' &&
    identity.provider === mta_provider &&
    identity.state === 'registering' &&
    dns_records.length > 2 &&
    dns_records.every((record: { name: string }) => `.${record.name}`.endsWith(`.${name}`))
  return { id, name: isWhole ? name : `${name}, by half`, mta_provider }
}

interface AuditRow {
  seq: number
  request_id: string
  operation: string
  resource_id: string
  related: { resource: string; id: number; before: object; after: object }[] | null
}

function auditMismatch({ operation, related }: AuditRow, act: Act, { moves }: Expected): string | undefined {
  if (operation !== act.kind) return `the audit says ${operation}`
  const told = moves.map(({ id, before, after }) => ({
    resource: 'route',
    id,
    before: { address: before },
    after: { address: after },
  }))
  const recorded = (related ?? []).map((entry) => ({ ...entry, id: Number(entry.id) }))
  return isDeepStrictEqual(recorded, told) ? undefined : `the model moves ${JSON.stringify(told)}`
}

/** Nothing was changed, so the model must not expect a change. */
function unrecordedMismatch({ act, answer }: Outcome, state: ModelState): string | undefined {
  const expected = perform(state, act)
  return expected.next === state ? mismatchOf(answer, expected) : 'the model changes something'
}

const rowsAfter = async (project: number, seq: number): Promise<AuditRow[]> => {
  const rows = await database.query<AuditRow & { addresses: Record<string, string | null> }>(
    `select seq::int, request_id, operation, resource_id, related, ${addressesBeside} as addresses from control.audit
      where chain = $1 and seq > $2 order by seq`,
    [project, seq],
  )
  return rows.map(withAuditAddresses)
}

const sorted = ({ domains, routes, keys }: ModelState) => {
  const byId = (one: { id: number }, other: { id: number }) => one.id - other.id
  return {
    domains: [...domains].sort(byId),
    routes: [...routes].sort(byId),
    keys: [...keys].sort(byId),
  }
}

async function storedState(project: number): Promise<ModelState> {
  const [row] = await database.query<{ state: ModelState }>(
    `select json_build_object(
       'domains', (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'mta_provider', mta_provider,
                     'version', version) order by id), '[]') from control.domains where project_id = $1),
       'routes', (select coalesce(json_agg(json_build_object('id', id, 'domain_id', domain_id, 'match', match,
                     'address', address, 'action', action, 'endpoint_id', endpoint_id, 'forward_to', forward_to,
                     'is_active', is_active, 'version', version) order by id), '[]')
                    from control.routes where project_id = $1),
       'keys', (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'domain_id', domain_id,
                     'version', version) order by id), '[]') from control.api_keys where project_id = $1)) as state`,
    [project],
  )
  return row?.state ?? assert.fail()
}

const strayAddresses = () =>
  database.query(
    `select routes.id, address, name from control.routes join control.domains on domains.id = domain_id
      where match = 'address' and split_part(address, '@', 2) <> name`,
  )
