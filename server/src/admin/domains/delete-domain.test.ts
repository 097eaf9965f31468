import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
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

const reason = 'The customer gave the domain up'
interface Domain {
  id: number
  project_id: number
}
const pathOf = ({ id, project_id }: Domain) => `/projects/${project_id}/domains/${id}`
const remove = (domain: Domain, body: object | undefined = { reason }) => admin.delete(pathOf(domain), body)

describe('domains.delete', () => {
  test('removes a domain and its records, and retires its identity', async () => {
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
    assert.equal((await keys(domain.identity.id)).length, 1, 'what was accepted is still signed')
    assert.deepEqual((await jobs('identities.reconcile')).at(-1), { identity_id: domain.identity.id })
    await assertAudited(answer, {
      operation: 'domains.delete',
      project_id: project.id,
      resource: ['domain', domain.id],
      reason,
      before: {
        name: 'gone.example.com',
        mta_provider: 'service',
        status: 'pending',
        identity_id: domain.identity.id,
        selector: domain.identity.selector,
      },
    })
  })

  test('leaves the name free for a new domain, which is proved anew', async () => {
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
    test(`is refused while ${what} names it`, async () => {
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

  test('names ten of those that use it at most, of both kinds', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id)
    const ids: number[] = []
    for (let n = 0; n < 11; n++) ids.push(await addressRoute(domain, `n${n}@x.example`))
    const key = await boundKey(domain)
    const { message } = (await remove(domain)).body
    const listed = ids.slice(0, 10).join(', ')
    assert.ok(message.includes(`routes ${listed} and more and API keys ${key}.`), message)
  })

  test('is not stopped by what names another domain', async () => {
    const project = await makeProject()
    const [domain, other] = [await makeDomain(project.id), await makeDomain(project.id)]
    await catchAll(other)
    await boundKey(other)
    assert.equal((await remove(domain)).status, 204)
  })

  test('needs a reason', async () => {
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

  test('tells beforehand what follows', async () => {
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
      'No new mail is accepted from leaving.example.com, and mail that arrives for it is refused.',
      'Mails still queued under its identity: 3. They go out signed with it; after the last one it is deregistered with "ses", unless another project has the name there.',
      'Its DNS records can be removed once the last mail has arrived.',
    ])
    assert.deepEqual(body.warnings, [
      'leaving.example.com is verified: mail from this domain is refused as soon as it is deleted.',
    ])
    assert.equal((await admin.get(pathOf(domain))).body.status, 'verified')
  })

  test("answers 404 for another project's domain as for none", async () => {
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

  test('of one domain many times at once happens once', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id)
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(domain)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, ...Array(9).fill(404)])
  })
})
