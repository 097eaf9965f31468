import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()

describe('domains.show', () => {
  test('returns the created resource, with its version in the ETag', async () => {
    for (const mta_provider of ['ses', 'service'] as const) {
      const domain = await makeDomain(projectId, { mta_provider })
      const answer = await admin.get(`/projects/${projectId}/domains/${domain.id}`)
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.body, domain)
      assert.equal(answer.headers.get('etag'), '"1"')
      assert.ok(!answer.text.includes('PRIVATE KEY'))
      await assertNotAudited(answer)
    }
  })

  test('shows the results of checks, which change neither version nor updated_at', async () => {
    const domain = await makeDomain(projectId)
    await database.query(
      `update control.domains set status = 'verified', verified_at = '2026-11-14 09:30:00.5+00',
              last_checked_at = '2026-11-14 10:30:00.123456+00', last_check_error = 'One is missing.' where id = $1`,
      [domain.id],
    )
    await database.query(
      `update control.identities set state = 'registered', registered_at = '2026-11-14 09:00:00.25+00' where id = $1`,
      [domain.identity.id],
    )
    await database.query(
      `update control.dns_records set status = 'failed' where domain_id = $1 and purpose = 'ownership'`,
      [domain.id],
    )
    const answer = await admin.get(`/projects/${projectId}/domains/${domain.id}`)
    assert.deepEqual(answer.body, {
      ...domain,
      status: 'verified',
      identity: { ...domain.identity, state: 'registered', registered_at: '2026-11-14T09:00:00.250Z' },
      dns_records: domain.dns_records.map((record) =>
        record.purpose === 'ownership' ? { ...record, status: 'failed' } : record,
      ),
      verified_at: '2026-11-14T09:30:00.500Z',
      last_checked_at: '2026-11-14T10:30:00.123Z',
      last_check_error: 'One is missing.',
    })
    assert.equal(answer.headers.get('etag'), '"1"')
  })

  test('shows the live identity, regardless of how many were retired', async () => {
    const domain = await makeDomain(projectId)
    const path = `/projects/${projectId}/domains/${domain.id}`
    const edited = await admin.patch(path, { mta_provider: 'ses' })
    await database.query(
      `update control.identities set state = 'retired', retired_at = now() where id = $1`,
      [domain.identity.id],
    )
    const shown = await admin.get(path)
    assert.deepEqual(shown.body, edited.body)
    assert.equal(shown.headers.get('etag'), '"2"')
  })

  test("returns the same 404 for another project's domain as for a missing one", async () => {
    const domain = await makeDomain(projectId)
    const other = await makeProject()
    assertProblem(await admin.get(`/projects/${other.id}/domains/${domain.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${other.id}/domains/999999999`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/999999999/domains/${domain.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${projectId}/domains/0x10`), 400, 'invalid_parameter')
  })
})
