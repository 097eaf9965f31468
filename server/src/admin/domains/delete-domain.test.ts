import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf, keptOfDomain } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const { addressRoute, catchAll, boundKey, queueMail, identities, keys, jobs } = domainRows(database)

const reason = 'The customer no longer owns the domain'
interface Domain {
  id: number
  project_id: number
}
const pathOf = ({ id, project_id }: Domain) => `/projects/${project_id}/domains/${id}`
const remove = (domain: Domain, body: object | undefined = { reason }) => admin.delete(pathOf(domain), body)

describe('domains.delete', () => {
  test('deletes a domain and its records, and retires its identity', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { mta_provider: 'service', name: 'gone.example.com' })
    const answer = await remove(domain)
    assert.equal(answer.status, 204)
    assert.equal(answer.text, '')
    assert.equal(answer.headers.get('etag'), null)
    assertProblem(await admin.get(pathOf(domain)), 404, 'not_found')
    assert.deepEqual((await admin.get(`/projects/${project.id}/domains`)).body.data, [])
    assert.deepEqual(
      await database.query('select from control.dns_records where domain_id = $1', [domain.id]),
      [],
    )
    assert.deepEqual(await identities(project.id), [
      {
        id: domain.identity.id,
        domain_id: null,
        name: 'gone.example.com',
        provider: 'service',
        state: 'retiring',
        is_living: false,
        is_due: true,
      },
    ])
    assert.equal((await keys(domain.identity.id)).length, 1, 'accepted mail is still signed')
    assert.deepEqual((await jobs('identities.reconcile')).at(-1), { identity_id: domain.identity.id })
    await assertAudited(answer, {
      operation: 'domains.delete',
      project_id: project.id,
      resource: ['domain', domain.id],
      reason,
      before: keptOfDomain(domain),
    })
  })

  test('frees the name for a new domain, which must be verified again', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { name: 'again.example.com' })
    await remove(domain)
    const again = await makeDomain(project.id, { name: 'again.example.com' })
    assert.notEqual(again.dns_records[0]?.value, domain.dns_records[0]?.value)
  })

  const users: Record<string, [add: (domain: Domain) => Promise<number>, named: string]> = {
    'an address route': [(domain) => addressRoute(domain, 'info@x.example'), 'routes'],
    'an inactive route': [(domain) => addressRoute(domain, 'info@x.example', { isActive: false }), 'routes'],
    'a catch-all route': [catchAll, 'routes'],
    'an API key': [boundKey, 'API keys'],
  }
  for (const [what, [add, named]] of Object.entries(users)) {
    test(`is rejected while ${what} refers to it`, async () => {
      const project = await makeProject()
      const domain = await makeDomain(project.id)
      const user = await add(domain)
      const answer = await remove(domain)
      assertProblem(answer, 409, 'in_use')
      assert.match(answer.body.message, new RegExp(`is used by ${named} ${user}\\.`))
      await assertNotAudited(answer)
      assertProblem(await admin.delete(`${pathOf(domain)}?dry_run=true`, {}), 409, 'in_use')
      assert.deepEqual((await admin.get(pathOf(domain))).body, domain)
      assert.equal((await identities(project.id))[0]?.state, 'registering')
    })
  }

  test('names at most ten routes and keys that use the domain', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id)
    const ids: number[] = []
    for (let n = 0; n < 11; n++) ids.push(await addressRoute(domain, `n${n}@x.example`))
    const key = await boundKey(domain)
    const { message } = (await remove(domain)).body
    const listed = ids.slice(0, 10).join(', ')
    assert.ok(message.includes(`routes ${listed} and more and API keys ${key}.`), message)
  })

  test("is not blocked by another domain's routes and keys", async () => {
    const project = await makeProject()
    const [domain, other] = [await makeDomain(project.id), await makeDomain(project.id)]
    await catchAll(other)
    await boundKey(other)
    assert.equal((await remove(domain)).status, 204)
  })

  test('requires a reason', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id)
    for (const answer of [await remove(domain, {}), await admin.delete(pathOf(domain))]) {
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assertProblem(await remove(domain, { reason: ' ' }), 422, 'validation_failed')
    assertProblem(await remove(domain, { reason, force: true }), 422, 'validation_failed')
    assert.deepEqual((await admin.get(pathOf(domain))).body, domain)
  })

  test('honours If-Match', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id)
    assertProblem(
      await admin.delete(pathOf(domain), { reason }, { 'if-match': '"2"' }),
      412,
      'stale_resource',
    )
    assert.equal((await admin.delete(pathOf(domain), { reason }, { 'if-match': '"1"' })).status, 204)
  })

  test('describes its effects in a preview', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { name: 'leaving.example.com' })
    await queueMail(project.id, domain.identity.id, 3)
    await database.query(
      `update control.domains set status = 'verified', verified_at = now() where id = $1`,
      [domain.id],
    )
    const { body } = await admin.delete(`${pathOf(domain)}?dry_run=true`, {})
    assert.equal(body.reason_required, true)
    assert.deepEqual(body.effects, [
      'New mail from leaving.example.com and inbound mail for it are rejected.',
      'Messages still queued under its identity: 3. They are signed with it and sent. Then the identity is deregistered with "ses", unless another project has registered the name there.',
      'Its DNS records can be removed after the last message is delivered.',
    ])
    assert.deepEqual(body.warnings, [
      'leaving.example.com is verified: mail from this domain is rejected as soon as it is deleted.',
    ])
    assert.equal((await admin.get(pathOf(domain))).body.status, 'verified')
  })

  test("returns the same 404 for another project's domain as for a missing one", async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const domain = await makeDomain(project.id)
    for (const answer of [
      await remove({ ...domain, project_id: other.id }),
      await remove({ ...domain, project_id: 999_999_999 }),
      await remove({ ...domain, id: 999_999_999 }),
    ]) {
      assertProblem(answer, 404, 'not_found')
    }
    assert.equal((await remove(domain)).status, 204)
    assertProblem(await remove(domain), 404, 'not_found')
  })

  test('takes effect once for many concurrent requests', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id)
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(domain)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, ...Array(9).fill(404)])
  })
})
