import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan, makeProject, makeMember, makeDomain, makeApiKey } = fixtures(database, admin)
const preview = async (id: number, body: object) =>
  (await admin.patch(`/projects/${id}?dry_run=true`, body)).body

const queue = (projectId: number, state: string, mails: number) =>
  database.query(
    `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, state)
     select gen_random_uuid(), 0, $1, 1, 'service', 'someone@example.com', $2
       from generate_series(1, $3::int)`,
    [projectId, state, mails],
  )

describe('a preview of projects.edit', () => {
  test('of a lock tells what stops', async () => {
    const { id } = await makeProject()
    await makeDomain(id, { status: 'verified' })
    await makeDomain(id)
    await makeApiKey(id)
    await makeApiKey(id, { is_active: false })
    await queue(id, 'ready', 3)
    await queue(id, 'deferred', 2)
    await queue(id, 'leased', 1)
    await queue(id, 'awaiting', 1)
    assert.deepEqual((await preview(id, { is_locked: true })).effects, [
      'No new mail is accepted: verified domains 1, active API keys 1.',
      'Mails that wait: 5. They are held until it is unlocked; one that is held for 7 days fails.',
      'Mails that are leaving just now and cannot be stopped: 2.',
    ])
  })

  test('of an unlock tells what goes on', async () => {
    const { id } = await makeProject()
    await admin.patch(`/projects/${id}`, { is_locked: true, reason: 'Card testing' })
    await queue(id, 'ready', 4)
    assert.deepEqual((await preview(id, { is_locked: false })).effects, [
      'The project sends again. Mails that were held and go on: 4.',
    ])
  })

  test('does not count beyond what anybody needs to know', async () => {
    const { id } = await makeProject()
    await queue(id, 'ready', 10_001)
    assert.match((await preview(id, { is_locked: true })).effects[1], /^Mails that wait: more than 10000\./)
  })

  test('of another plan tells the limits before and after, and what is then too much', async () => {
    const project = await makeProject()
    await makeMember(project.id)
    await makeDomain(project.id)
    const small = await makePlan({ name: 'Small', max_users: 1, max_domains: 0 })
    const { effects, warnings } = await preview(project.id, { plan_id: small.id })
    assert.deepEqual(effects, [
      `The plan in force changes from "${project.plan.name}" to "Small".`,
      'The limit max_domains goes from 1000 to 0.',
      'The limit max_users goes from 1000 to 1.',
    ])
    assert.deepEqual(warnings, [
      'It has 1 domains, of 0 allowed: they stay, and none is added.',
      'It has 2 members, of 1 allowed: they stay, and none is added.',
    ])
  })

  test("of withdrawing the operator's MTAs counts the domains on them", async () => {
    const { id } = await makeProject()
    await makeDomain(id, { mta_provider: 'service' })
    const { warnings } = await preview(id, { allow_service_mta: false })
    assert.deepEqual(warnings, ["Domains on the operator's own MTAs: 1. They can send no new mail."])
  })
})
