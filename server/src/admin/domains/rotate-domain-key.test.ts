import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf, keptOfDomain } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** The cutover to the new record is tested in core/control/domains/check.test.ts. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const { keys } = domainRows(database)

const reason = 'Yearly rotation'
interface Domain {
  id: number
  project_id: number
}
const pathOf = ({ id, project_id }: Domain) => `/projects/${project_id}/domains/${id}`
const rotate = (domain: Domain, body: object | undefined = { reason }) =>
  admin.post(`${pathOf(domain)}/rotate`, body)
const show = async (domain: Domain) => (await admin.get(pathOf(domain))).body

interface Record {
  purpose: string
  name: string
}
const dkimNames = ({ dns_records }: { dns_records: Record[] }) =>
  dns_records.filter(({ purpose }) => purpose === 'dkim').map(({ name }) => name)
const others = ({ dns_records }: { dns_records: Record[] }) =>
  dns_records.filter(({ purpose }) => purpose !== 'dkim')

async function makeOwn({ isVerified }: { isVerified: boolean }) {
  const project = await makeProject()
  const domain = await makeDomain(project.id, { mta_provider: 'service' })
  if (!isVerified) return domain
  await database.query(
    `update control.domains set status = 'verified', verified_at = now(), failing_since = null,
            next_check_at = now() + interval '1 day' where id = $1`,
    [domain.id],
  )
  await database.query(`update control.dns_records set status = 'verified' where domain_id = $1`, [domain.id])
  await database.query(
    `update control.dkim_keys set state = 'active', activated_at = now() where identity_id = $1`,
    [domain.identity.id],
  )
  return show(domain)
}

describe('domains.rotate', () => {
  test('adds a new key next to the current one, which still signs', async () => {
    const before = await makeOwn({ isVerified: true })
    const [old] = await keys(before.identity.id)
    const answer = await rotate(before)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(Object.keys(answer.body), ['resource'])
    const { resource } = answer.body
    const [present, fresh] = dkimNames(resource)
    assert.deepEqual([present], dkimNames(before))
    assert.match(fresh ?? '', /^postern-[0-9a-f]{8}\._domainkey\./)
    assert.notEqual(fresh, present)
    assert.deepEqual(resource, {
      ...before,
      dns_records: resource.dns_records,
      updated_at: resource.updated_at,
    })
    assert.deepEqual(others(resource), others(before))
    assert.equal(resource.dns_records.at(-1).status, 'pending')
    assert.ok(resource.updated_at > before.updated_at)
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.equal(answer.headers.get('location'), `/v1/admin${pathOf(before)}`)
    assert.deepEqual(await show(before), resource)

    const after = await keys(before.identity.id)
    assert.deepEqual(
      after.map(({ id, state, sealed }) => [id, state, sealed !== null]),
      [
        [old?.id, 'active', true],
        [after[1]?.id, 'pending', true],
      ],
    )
    assert.deepEqual(after[0]?.sealed, old?.sealed, 'the current key does not change')
    const common = keptOfDomain(before)
    await assertAudited(answer, {
      operation: 'domains.rotate',
      project_id: before.project_id,
      resource: ['domain', before.id],
      reason,
      before: { ...common, dkim_records: [present] },
      after: { ...common, dkim_records: [present, fresh] },
    })
    assert.ok(!answer.text.includes('PRIVATE KEY'))
  })

  test('queues an immediate DNS check', async () => {
    const domain = await makeOwn({ isVerified: true })
    await rotate(domain)
    const [row] = await database.query(
      'select next_check_at <= now() as is_due, status from control.domains where id = $1',
      [domain.id],
    )
    assert.deepEqual(row, { is_due: true, status: 'verified' })
  })

  test('replaces a new key that is not in DNS yet', async () => {
    const domain = await makeOwn({ isVerified: true })
    const [present] = dkimNames(domain)
    const [, first] = dkimNames((await rotate(domain)).body.resource)
    const again = (await rotate(domain)).body.resource
    const [stillPresent, second, third] = dkimNames(again)
    assert.deepEqual([stillPresent, third], [present, undefined])
    assert.notEqual(second, first)
    assert.deepEqual(
      (await keys(domain.identity.id)).map(({ state }) => state),
      ['active', 'pending'],
    )
  })

  test('of a domain that was never verified replaces the only key', async () => {
    const before = await makeOwn({ isVerified: false })
    const { resource } = (await rotate(before)).body
    assert.equal(dkimNames(resource).length, 1)
    assert.notDeepEqual(dkimNames(resource), dkimNames(before))
    assert.equal(dkimNames(resource)[0], `${resource.identity.selector}._domainkey.${before.name}`)
    assert.equal((await keys(before.identity.id)).length, 1)
  })

  test('leaves one current and one new key after five concurrent requests', async () => {
    const domain = await makeOwn({ isVerified: true })
    const answers = await Promise.all(Array.from({ length: 5 }, () => rotate(domain)))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.deepEqual(
      (await keys(domain.identity.id)).map(({ state }) => state),
      ['active', 'pending'],
    )
    const last = answers.find(({ headers }) => headers.get('etag') === '"6"') ?? assert.fail()
    assert.deepEqual(await show(domain), last.body.resource)
    assert.equal(dkimNames(last.body.resource).length, 2)
  })

  test('is rejected if the provider manages the keys', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { mta_provider: 'ses' })
    const answer = await rotate(domain)
    assertProblem(answer, 422, 'validation_failed')
    assert.match(answer.body.message, /SES manages the DKIM keys/)
    await assertNotAudited(answer)
    assert.deepEqual(await show(domain), domain)
  })

  test('requires a reason; without it, the keys do not change', async () => {
    const domain = await makeOwn({ isVerified: true })
    for (const answer of [await rotate(domain, {}), await admin.post(`${pathOf(domain)}/rotate`)]) {
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assertProblem(await rotate(domain, { reason, selector: 'mine' }), 422, 'validation_failed')
    assert.equal((await keys(domain.identity.id)).length, 1)
  })

  test('honours If-Match, and takes effect once per Idempotency-Key', async () => {
    const domain = await makeOwn({ isVerified: true })
    const path = `${pathOf(domain)}/rotate`
    assertProblem(await admin.post(path, { reason }, { 'if-match': '"9"' }), 412, 'stale_resource')
    const key = { 'idempotency-key': 'rotate-once' }
    const first = await admin.post(path, { reason }, key)
    const second = await admin.post(path, { reason }, key)
    assert.deepEqual([second.status, second.body], [200, first.body])
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(await show(domain), first.body.resource)
  })

  test('names the record to publish in its preview', async () => {
    const domain = await makeOwn({ isVerified: true })
    const { body } = await admin.post(`${pathOf(domain)}/rotate?dry_run=true`, {})
    assert.deepEqual(body.effects, [
      `Record to publish: TXT <selector>._domainkey.${domain.name} (dkim).`,
      'Mail is signed with the current key until the new record is found in DNS. Sending is not interrupted.',
    ])
    assert.deepEqual(body.warnings, [
      'Leave the current record published for another week: receivers need it to verify mail in transit.',
    ])
    assert.equal(body.reason_required, true)
    assert.deepEqual(await show(domain), domain)
    const unverified = await makeOwn({ isVerified: false })
    const preview = await admin.post(`${pathOf(unverified)}/rotate?dry_run=true`, {})
    assert.match(preview.body.effects[1], /is not verified yet/)
  })

  test("returns the same 404 for another project's domain as for a missing one", async () => {
    const domain = await makeOwn({ isVerified: false })
    const other = await makeProject()
    for (const answer of [
      await rotate({ ...domain, project_id: other.id }),
      await rotate({ ...domain, id: 999_999_999 }),
    ]) {
      assertProblem(answer, 404, 'not_found')
    }
    assert.deepEqual(await show(domain), domain)
  })
})
