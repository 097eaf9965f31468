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

describe('preview of projects.edit', () => {
  test('of a lock lists what stops', async () => {
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
      'New mail is rejected. Verified domains: 1; active API keys: 1.',
      'Queued messages: 5. They are held until the project is unlocked, and fail after 7 days.',
      'Messages being sent now that cannot be stopped: 2.',
    ])
  })

  test('of an unlock lists what continues', async () => {
    const { id } = await makeProject()
    await admin.patch(`/projects/${id}`, { is_locked: true, reason: 'Card testing' })
    await queue(id, 'ready', 4)
    assert.deepEqual((await preview(id, { is_locked: false })).effects, [
      'The project can send again. Held messages that will be sent: 4.',
    ])
  })

  test('limits the count of queued mail', async () => {
    const { id } = await makeProject()
    await queue(id, 'ready', 10_001)
    assert.match((await preview(id, { is_locked: true })).effects[1], /^Queued messages: more than 10000\./)
  })

  test('of another plan lists the limits before and after, and what exceeds them', async () => {
    const project = await makeProject()
    await makeMember(project.id)
    await makeDomain(project.id)
    const small = await makePlan({ name: 'Small', max_users: 1, max_domains: 0 })
    const { effects, warnings } = await preview(project.id, { plan_id: small.id })
    assert.deepEqual(effects, [
      `The current plan changes from "${project.plan.name}" to "Small".`,
      'The limit max_domains changes from 1000 to 0.',
      'The limit max_users changes from 1000 to 1.',
    ])
    assert.deepEqual(warnings, [
      'Over the plan limit: 1 of 0 domains. They are kept, but none can be added.',
      'Over the plan limit: 2 of 1 members. They are kept, but none can be added.',
    ])
  })

  test('of removing allow_service_mta counts the affected domains', async () => {
    const { id } = await makeProject()
    await makeDomain(id, { mta_provider: 'service' })
    const { warnings } = await preview(id, { allow_service_mta: false })
    assert.deepEqual(warnings, ['Domains on the shared mail servers: 1. New mail from them is rejected.'])
  })
})
