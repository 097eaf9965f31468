import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addressesBeside, withAuditAddresses } from '../../testing/expectations/audit-row.ts'
import { type MutationRequest, mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const scenarios = mutationScenarios(database, admin)
const mutations = adminOperations.filter(isMutation)

const send = (
  operation: Mutation,
  { path, body }: MutationRequest,
  { query = '', headers = {} }: { query?: string; headers?: Record<string, string> } = {},
): Promise<Answer> => admin.request(methodOf(operation), `${path}${query}`, body, headers)

const withReason = ({ path, body }: MutationRequest): MutationRequest => ({ path, body: { ...body, reason } })

interface Entry {
  resource: string
  id: number | string | null
  field: string
  before: unknown
  after: unknown
}

interface AuditRow {
  resource_type: string
  resource_id: string
  before: object | null
  after: object | null
  related: { resource: string; id: number; before: object | null; after: object | null }[] | null
  subject: { email: string; name: string | null } | null
}

const auditRowsOf = async (answer: Answer): Promise<AuditRow[]> => {
  const rows = await database.query<AuditRow & { addresses: Record<string, string | null> }>(
    `select ${addressesBeside} as addresses, resource_type, resource_id, before, after, related,
            (select json_build_object('email', email, 'name', name) from control.audit_people
              where audit_id = audit.id and part = 'subject') as subject
       from control.audit where request_id = $1`,
    [answer.headers.get('x-request-id')],
  )
  return rows.map(withAuditAddresses)
}

/** A bucket of five minutes can end between two backtests. */
const withoutRange = (text: string): string => text.replace(/"backtest":\{"from":"[^"]+","to":"[^"]+"/, '')

/** The expected preview of an operation, derived from its audit row. */
function changesIn({ resource_type, resource_id, before, after, subject, related }: AuditRow): Entry[] {
  // The id of a message is a UUID.
  const id = /^\d+$/.test(resource_id) ? Number(resource_id) : resource_id
  return [
    ...differences(resource_type, id, before, after),
    // Stored next to the row; absent if the person does not change.
    ...differences(resource_type, id, before && subject, after && subject),
    ...(related ?? []).flatMap((change) =>
      differences(change.resource, change.id, change.before, change.after),
    ),
  ]
}

function differences(
  resource: string,
  id: number | string,
  before: object | null,
  after: object | null,
): Entry[] {
  const old = new Map(Object.entries(before ?? {}))
  const young = new Map(Object.entries(after ?? {}))
  return (
    [...new Set([...old.keys(), ...young.keys()])]
      .map((field) => ({
        resource,
        id: before === null ? null : id,
        field,
        before: old.get(field) ?? null,
        after: young.get(field) ?? null,
      }))
      .filter((entry) => JSON.stringify(entry.before) !== JSON.stringify(entry.after))
      // The preview of an import has its report instead.
      .filter(({ field }) => field !== 'addresses')
      .map((entry) => (unknowable.has(entry.field) ? { ...entry, after: null } : entry))
  )
}

/** Generated, numbered or timestamped when the change is made. */
const unknowable = new Set(['secret_hint', 'prefix', 'dns_records', 'next_check_at'])

/**
 * The audit log records different fields of these resources than the API returns. A preview uses the API's field
 * names.
 */
const shownResources: Record<string, RegExp> = {
  domain: /^\/projects\/\d+\/domains\/\d+/,
  project: /^\/projects\/\d+/,
}

const bookkeeping = new Set(['id', 'project_id', 'created_at', 'updated_at'])

/** The resource as the API returns it, with configuration fields only; null if there is none. */
async function shown(path: string | undefined): Promise<{ id: number; view: object } | null> {
  if (path === undefined) return null
  const { status, body } = await admin.get(path)
  if (status === 404) return null
  const fields = Object.entries(body).filter(([field]) => !bookkeeping.has(field))
  return { id: body.id, view: Object.fromEntries(fields) }
}

/** The path of the request's resource, or undefined if it does not exist yet. */
const pathOf = (resource: string | undefined, path: string | null): string | undefined =>
  resource === undefined
    ? undefined
    : shownResources[resource]?.exec(path?.replace('/v1/admin', '') ?? '')?.[0]

/** An identity gets its id and its selector when the change is made. */
const withoutDrawn = (entry: Entry): Entry =>
  entry.field === 'identity' && entry.after !== null
    ? { ...entry, after: { ...entry.after, id: null, selector: null } }
    : entry

const sorted = (entries: Entry[]): string[] =>
  entries
    .map(({ resource, id, field, before, after }) =>
      JSON.stringify([resource, id, field, before, after], inOrder),
    )
    .sort()

/** PostgreSQL stores the members of an object in its own order. */
const inOrder = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort())
    : value

/**
 * Makes the change. Returns whether the request was first rejected for a missing reason, and the response to the
 * request with a reason.
 */
async function perform(operation: Mutation, request: MutationRequest) {
  const rows = await watchRows(database, { except: ['control.denials'] })
  const answer = await send(operation, request)
  const wasRefused = ['reason_required', 'limit_exceeded'].includes(answer.body?.error)
  if (!wasRefused) return { wasRefused, answer }
  assert.equal(answer.status, 422)
  await rows.assertUntouched()
  return { wasRefused, answer: await send(operation, withReason(request)) }
}

function assertPreview(operation: Mutation, preview: Answer): void {
  assert.equal(preview.status, 200, preview.text)
  const { body, headers, text } = preview
  assert.deepEqual(Object.keys(body), [
    ...['operation', 'reason_required', 'changes', 'effects', 'warnings'],
    ...(body.backtest ? ['backtest'] : []),
    ...(body.report ? ['report'] : []),
    ...(body.bulk ? ['bulk'] : []),
  ])
  assert.equal(body.operation, operation.id)
  for (const sentence of [...body.effects, ...body.warnings]) assert.match(sentence, /^[A-Z].+\.$/)
  // Thirty characters without a space cannot be a word in a sentence. The first four characters of an API key are not
  // secret. The current records of a domain are public in DNS.
  const withoutRecords = text.replaceAll(/"dns_records","before":\[.*?\],/g, '')
  assert.doesNotMatch(
    withoutRecords,
    /whsec_|pk_(live|test)_\w{5}|[\w+/]{30}/,
    'the preview contains a secret',
  )
  assert.equal(headers.get('etag'), null)
  assert.equal(headers.get('location'), null)
}

test('every mutation has a scenario, and every scenario a mutation', () => {
  assert.deepEqual(Object.keys(scenarios).sort(), mutations.map(({ id }) => id).sort())
  for (const [id, list] of Object.entries(scenarios)) assert.ok(list.length > 0, id)
})

for (const operation of mutations) {
  describe(`dry_run of ${operation.id}`, () => {
    for (const scenario of scenarios[operation.id] ?? []) {
      test(`that ${scenario.what} writes nothing and shows what the mutation then does`, async () => {
        const request = await scenario.prepare()
        const resource = Object.keys(shownResources).find((name) => operation.id.startsWith(`${name}s.`))
        const path = pathOf(resource, request.path)
        const before = await shown(path)
        const rows = await watchRows(database)
        const preview = await send(operation, request, { query: '?dry_run=true' })
        const withOne = await send(operation, withReason(request), { query: '?dry_run=true' })
        await rows.assertUntouched()
        assertPreview(operation, preview)
        assert.equal(
          withoutRange(withOne.text),
          withoutRange(preview.text),
          'a reason does not change the preview',
        )

        const { wasRefused, answer } = await perform(operation, request)
        assert.ok(answer.status < 300, answer.text)
        assert.equal(preview.body.reason_required, wasRefused)
        assert.equal(wasRefused, scenario.needsReason === true)
        const audited = await auditRowsOf(answer)
        assert.equal(audited.length, scenario.changesNothing ? 0 : 1)
        const after = await shown(path ?? pathOf(resource, answer.headers.get('location')))
        const isShown = (entry: Entry) => entry.resource === resource && entry.field !== 'next_check_at'
        const [id = null] = [before?.id ?? after?.id]
        assert.deepEqual(
          sorted(preview.body.changes),
          sorted([
            ...audited.flatMap(changesIn).filter((entry) => !isShown(entry)),
            ...(resource === undefined || id === null
              ? []
              : differences(resource, id, before?.view ?? null, after?.view ?? null).map(withoutDrawn)),
          ]),
        )
        assert.equal(preview.body.changes.length === 0, scenario.changesNothing === true)
      })
    }

    test('is rejected if the parameter is misspelled, and the mutation is not performed', async () => {
      const request = withReason(await preparedFor(operation))
      const rows = await watchRows(database)
      for (const query of misspelt) {
        const { status, body } = await send(operation, request, { query })
        assert.deepEqual([query, status, body.error], [query, 400, 'invalid_parameter'])
      }
      await rows.assertUntouched()
    })
  })
}

const misspelt = [
  '?dry_run=1',
  '?dry_run=TRUE',
  '?dry_run=True',
  '?dry_run=yes',
  '?dry_run=',
  '?dry_run',
  '?dry_run=true%20',
  '?dry_run=true&dry_run=true',
  '?dry_run=true&dry_run=false',
  '?dryrun=true',
  '?dry-run=true',
  '?DRY_RUN=true',
  '?dry_run[]=true',
  '?dry_run=true&reason=x',
]

const preparedFor = (operation: Mutation): Promise<MutationRequest> => {
  const [scenario] = scenarios[operation.id] ?? []
  return scenario ? scenario.prepare() : assert.fail(`${operation.id} has no scenario`)
}

describe('dry_run', () => {
  test('with an Idempotency-Key leaves the key unused', async () => {
    for (const operation of mutations) {
      const request = withReason(await preparedFor(operation))
      const headers = { 'idempotency-key': `preview-${operation.id}` }
      const rows = await watchRows(database)
      const first = await send(operation, request, { query: '?dry_run=true', headers })
      assert.equal(first.status, 200, first.text)
      await rows.assertUntouched()
      const real = await send(operation, request, { headers })
      assert.ok(real.status < 300, real.text)
      assert.equal(real.headers.get('idempotent-replayed'), null)
      const again = await send(operation, request, { query: '?dry_run=true', headers })
      assert.notEqual(again.body.error, 'secret_already_revealed')
      assert.notEqual(again.headers.get('idempotent-replayed'), 'true')
    }
  })

  test('of a rejected request is rejected in the same way, and not counted', async () => {
    const { path } = await preparedFor(mutationOf('members.create'))
    const project = path.replace(/\/members$/, '')
    const owner = (await admin.get(path)).body.data[0]
    const refusals: [operation: string, request: MutationRequest, status: number, error: string][] = [
      ['projects.edit', { path: '/projects/4711', body: { is_locked: true } }, 404, 'not_found'],
      ['members.delete', { path: `${path}/${owner.id}`, body: { reason } }, 409, 'last_owner'],
      ['members.create', { path, body: { email: owner.email, role: 'admin' } }, 409, 'already_exists'],
      ['projects.edit', { path: project, body: { plan_id: 4711 } }, 422, 'validation_failed'],
      ['projects.edit', { path: project, body: { colour: 'red' } }, 422, 'validation_failed'],
    ]
    const rows = await watchRows(database)
    for (const [id, request, status, error] of refusals) {
      const refused = await send(mutationOf(id), request, { query: '?dry_run=true' })
      assert.deepEqual([id, refused.status, refused.body.error], [id, status, error])
    }
    const stale = await send(
      mutationOf('projects.edit'),
      { path: project, body: { name: 'Late' } },
      { query: '?dry_run=true', headers: { 'if-match': '"4711"' } },
    )
    assert.equal(stale.status, 412)
    await rows.assertUntouched()
  })

  test('set to false performs the mutation', async () => {
    const operation = mutationOf('projects.edit')
    const { path } = await preparedFor(operation)
    const { status, body } = await send(
      operation,
      { path, body: { name: 'Done' } },
      { query: '?dry_run=false' },
    )
    assert.equal(status, 200)
    assert.equal(body.name, 'Done')
    assert.equal((await admin.get(path)).body.name, 'Done')
  })
})

function mutationOf(id: string): Mutation {
  return mutations.find((operation) => operation.id === id) ?? assert.fail(id)
}
