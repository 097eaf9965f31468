import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { databaseNow, testDatabase } from '../../testing/harness/database.ts'

/** The check itself is tested in core/control/domains/check.test.ts. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { jobs } = domainRows(database)

interface Domain {
  id: number
  project_id: number
}
const pathOf = ({ id, project_id }: Domain) => `/projects/${project_id}/domains/${id}`
const verify = (domain: Domain, body: object | undefined = {}) => admin.post(`${pathOf(domain)}/verify`, body)
const dueAt = async ({ id }: Domain): Promise<Date | null> => {
  const [row] = await database.query<{ next_check_at: Date | null }>(
    'select next_check_at from control.domains where id = $1',
    [id],
  )
  return row?.next_check_at ?? null
}
const setVerified = ({ id }: Domain) =>
  database.query(`update control.domains set status = 'verified', verified_at = now() where id = $1`, [id])

describe('domains.verify', () => {
  test('queues an immediate DNS check, and changes neither version nor updated_at', async () => {
    const domain = await makeDomain((await makeProject()).id)
    const before = await databaseNow(database)
    const answer = await verify(domain, { reason: 'The customer has published the records' })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, domain)
    assert.equal(answer.headers.get('etag'), '"1"')
    const due = (await dueAt(domain)) ?? assert.fail('it is not due')
    assert.ok(before <= due && due <= (await databaseNow(database)), due.toISOString())
    assert.deepEqual((await jobs('domains.check')).at(-1), {
      project_id: domain.project_id,
      domain_id: domain.id,
    })
    const row = await auditRowOf(database, answer)
    assert.deepEqual(
      [row?.operation, row?.project_id, row?.reason, row?.before, row?.after],
      [
        'domains.verify',
        domain.project_id,
        'The customer has published the records',
        { next_check_at: null },
        { next_check_at: due.toISOString() },
      ],
    )
  })

  test('requires no reason and no body', async () => {
    const domain = await makeDomain((await makeProject()).id)
    assert.equal((await verify(domain)).status, 200)
    assert.equal((await admin.post(`${pathOf(domain)}/verify`)).status, 200)
    assertProblem(await verify(domain, { status: 'verified' }), 422, 'validation_failed')
  })

  test('works for verified and failed domains, and for those that are no longer checked', async () => {
    for (const status of ['verified', 'failed']) {
      const domain = await makeDomain((await makeProject()).id)
      await database.query('update control.domains set status = $2, next_check_at = null where id = $1', [
        domain.id,
        status,
      ])
      const answer = await verify(domain)
      assert.deepEqual([answer.status, answer.body.status], [200, status])
      assert.notEqual(await dueAt(domain), null)
    }
  })

  test('is rejected while the name is verified in another project, and the error names that project', async () => {
    const holder = await makeDomain((await makeProject()).id, { name: 'held.example.com' })
    const domain = await makeDomain((await makeProject()).id, { name: 'held.example.com' })
    await setVerified(holder)
    const before = await jobs('domains.check')
    for (const answer of [
      await verify(domain),
      await admin.post(`${pathOf(domain)}/verify?dry_run=true`, {}),
    ]) {
      assertProblem(answer, 409, 'domain_claimed')
      assert.match(
        answer.body.message,
        new RegExp(`is already verified in project ${holder.project_id} \\(domain ${holder.id}\\)`),
      )
      assert.equal(await auditRowOf(database, answer), undefined)
    }
    assert.equal(await dueAt(domain), null)
    assert.deepEqual(await jobs('domains.check'), before)
    assert.equal((await verify(holder)).status, 200, 'the project with the verified name can request a check')
    await admin.delete(pathOf(holder), { reason: 'Given up' })
    assert.equal((await verify(domain)).status, 200)
  })

  test('is not rejected because of a parent domain or subdomain', async () => {
    const holder = await makeDomain((await makeProject()).id, { name: 'parent.example' })
    await setVerified(holder)
    const below = await makeDomain((await makeProject()).id, { name: 'sub.parent.example' })
    assert.equal((await verify(below)).status, 200)
  })

  test('describes its effect in a preview, and changes nothing', async () => {
    const domain = await makeDomain((await makeProject()).id)
    const before = await jobs('domains.check')
    const { body } = await admin.post(`${pathOf(domain)}/verify?dry_run=true`, {})
    assert.deepEqual([body.reason_required, body.warnings], [false, []])
    assert.deepEqual(body.effects, [
      'The DNS records are checked within seconds. The domain then shows the result.',
    ])
    assert.equal(await dueAt(domain), null)
    assert.deepEqual(await jobs('domains.check'), before)
  })

  test("returns the same 404 for another project's domain as for a missing one", async () => {
    const domain = await makeDomain((await makeProject()).id)
    const other = await makeProject()
    for (const stranger of [
      { ...domain, project_id: other.id },
      { ...domain, id: 999_999_999 },
    ]) {
      assertProblem(await verify(stranger), 404, 'not_found')
    }
    assert.equal(await dueAt(domain), null)
  })
})
