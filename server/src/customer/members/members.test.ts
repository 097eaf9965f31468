import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, stranger } = await customers(api, database)

async function team() {
  const { owner, project } = await ownProject()
  const path = `/projects/${project.id}/members`
  const ownerId = (await owner.get(path)).body.data[0].id as number
  return { owner, ownerId, project, path, manager: await member(project.id, 'admin') }
}

describe('members.create by a customer', () => {
  test('invites an account, which becomes a member only when it accepts', async () => {
    const { manager, path, project } = await team()
    const grace = await stranger()
    const answer = await manager.post(path, { email: grace.user.email.toUpperCase(), role: 'developer' })
    assert.equal(answer.status, 201, answer.text)
    const { id, user_id, email, name, role, joined_at } = answer.body
    assert.deepEqual(
      [user_id, email, name, role, joined_at],
      [null, grace.user.email, null, 'developer', null],
    )
    assert.equal(answer.headers.get('location'), `/v1${path}/${id}`)
    assertProblem(await grace.get(`/projects/${project.id}`), 404, 'not_found')
    assert.deepEqual((await grace.get('/projects')).body.data, [])
    assertProblem(
      await manager.post(path, { email: grace.user.email, role: 'viewer' }),
      409,
      'already_exists',
    )
    assert.equal((await grace.post('/invitations/accept', { id })).status, 200)
    assert.equal((await grace.get(`/projects/${project.id}`)).status, 200)
  })

  test('returns a byte-identical response whether or not the address has an account', async () => {
    const { manager, path } = await team()
    const invite = async (email: string) => {
      const answer = await manager.post(path, { email, role: 'viewer' })
      const shown = await manager.get(`${path}/${answer.body.id}`)
      // The id, the requested address and the time always differ.
      const plain = (text: string) =>
        text
          .replaceAll(answer.body.created_at, '<time>')
          .replaceAll(email, '<email>')
          .replace(`"id":${answer.body.id},`, '"id":<id>,')
          .replace(`members/${answer.body.id},`, 'members/<id>,')
      const headers = ['location', 'etag', 'content-type'].map((name) => answer.headers.get(name) ?? '')
      return [answer.status, plain(answer.text), plain(headers.join()), plain(shown.text)]
    }
    const user = await make.makeUser()
    const disabled = await make.makeUser({ is_active: false })
    const administrator = await make.makeUser({ role: 'admin' })
    const unknown = await invite('nobody.at.all@example.org')
    for (const { email } of [user, disabled, administrator]) assert.deepEqual(await invite(email), unknown)
    const mails = await database.query(`select from control.system_mails where kind = 'invitation'`)
    assert.ok(mails.length >= 4, 'an email is queued for each')
  })

  test("is limited by the customers' database role, which can neither add nor find accounts", async () => {
    const { owner, project } = await team()
    const as = (statement: ReturnType<typeof sql>) =>
      openDatabase(database)
        .asCustomer()
        .forProject(project.id)
        .transaction((tx) => statement.execute(tx))
    await assert.rejects(
      as(sql`select * from control.find_account(${owner.user.email})`),
      /permission denied/,
    )
    await assert.rejects(
      as(sql`insert into control.members (project_id, user_id, email, role, joined_at)
             values (${project.id}, 1, 'a@example.org', 'viewer', now())`),
      /permission denied/,
    )
    await assert.rejects(
      as(sql`select * from control.count_invitation(${project.id + 1}, 1, 'a@example.org')`),
      /project of the transaction/,
    )
  })

  test('invites an address without an account and queues a mail', async () => {
    const { owner, path } = await team()
    const answer = await owner.post(path, { email: 'nobody-yet@example.org', role: 'viewer' })
    assert.equal(answer.status, 201, answer.text)
    assert.deepEqual([answer.body.user_id, answer.body.joined_at], [null, null])
    const mails = await database.query(
      `select from control.system_mails where kind = 'invitation' and subject_id = $1`,
      [answer.body.id],
    )
    const jobs = await database.query(`select from jobs.job where name = 'system-mail.send'`)
    assert.ok(mails.length === 1 && jobs.length > 0)
  })

  test("cannot grant ownership, and is rejected if it would exceed the plan's limit", async () => {
    const plan = await make.makePlan({ max_users: 2 })
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const path = `/projects/${project.id}/members`
    assertProblem(await owner.post(path, { email: 'a@example.org', role: 'owner' }), 422, 'validation_failed')
    assert.equal((await owner.post(path, { email: 'a@example.org', role: 'viewer' })).status, 201)
    const refused = await owner.post(path, { email: 'b@example.org', role: 'viewer' })
    assertProblem(refused, 422, 'limit_exceeded')
    assert.match(refused.body.message, /max_users/)
    assert.equal((await owner.get(path)).body.data.length, 2)
    const mails = await database.query('select from control.system_mails where project_id = $1', [project.id])
    assert.equal(mails.length, 1)
  })
})

describe('members.edit by a customer', () => {
  test('changes roles below owner, effective on the next request', async () => {
    const { manager, path, project } = await team()
    const grace = await member(project.id, 'viewer')
    assertProblem(await grace.post(`/projects/${project.id}/endpoints`, {}), 403, 'insufficient_role')
    const answer = await manager.patch(`${path}/${grace.memberId}`, { role: 'developer' })
    assert.deepEqual([answer.status, answer.body.role, answer.headers.get('etag')], [200, 'developer', '"2"'])
    assertProblem(await grace.post(`/projects/${project.id}/endpoints`, {}), 422, 'validation_failed')
  })

  test('does not let members exceed their own role or change the owner', async () => {
    const { owner, ownerId, manager, path, project } = await team()
    assertProblem(
      await manager.patch(`${path}/${manager.memberId}`, { role: 'owner' }),
      422,
      'validation_failed',
    )
    assertProblem(await manager.patch(`${path}/${ownerId}`, { role: 'viewer' }), 409, 'last_owner')
    assertProblem(await owner.patch(`${path}/${ownerId}`, { role: 'admin' }), 409, 'last_owner')
    const developer = await member(project.id, 'developer')
    assertProblem(
      await developer.patch(`${path}/${developer.memberId}`, { role: 'admin' }),
      403,
      'insufficient_role',
    )
    assert.equal((await manager.patch(`${path}/${manager.memberId}`, { role: 'viewer' })).status, 200)
    assertProblem(
      await manager.patch(`${path}/${manager.memberId}`, { role: 'admin' }),
      403,
      'insufficient_role',
    )
  })
})

describe('members.delete by a customer', () => {
  test('lets every member leave, and only owners and admins remove others', async () => {
    const { manager, path, project } = await team()
    const [ada, grace] = [await member(project.id, 'viewer'), await member(project.id, 'developer')]
    for (const one of [ada, grace]) {
      const refused = await one.delete(`${path}/${manager.memberId}`)
      assertProblem(refused, 403, 'insufficient_role')
    }
    assert.equal((await ada.delete(`${path}/${ada.memberId}`)).status, 204)
    assertProblem(await ada.get(`/projects/${project.id}`), 404, 'not_found')
    assert.equal((await manager.delete(`${path}/${grace.memberId}`)).status, 204)
    assertProblem(await grace.get(path), 404, 'not_found')
  })

  test('does not remove the owner, and withdraws invitations', async () => {
    const { owner, ownerId, manager, path } = await team()
    assertProblem(await owner.delete(`${path}/${ownerId}`), 409, 'last_owner')
    assertProblem(await manager.delete(`${path}/${ownerId}`), 409, 'last_owner')
    const { body } = await manager.post(path, { email: 'gone@example.org', role: 'viewer' })
    assert.equal((await manager.delete(`${path}/${body.id}`)).status, 204)
    assertProblem(await owner.get(`${path}/${body.id}`), 404, 'not_found')
  })
})

describe('members.list and members.show by a customer', () => {
  test('show every member as an administrator sees them', async () => {
    const { path, project } = await team()
    const viewer = await member(project.id, 'viewer')
    const list = await viewer.get(path)
    assert.deepEqual(list.body, (await admin.get(path)).body)
    const [first] = list.body.data
    assert.deepEqual((await viewer.get(`${path}/${first.id}`)).body, first)
  })
})
