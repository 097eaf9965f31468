import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { make, stranger, ownProject } = await customers(api, database)

async function invited(email: string, name = 'Web shop') {
  const { owner, project } = await ownProject({ name })
  const path = `/projects/${project.id}/members`
  const answer = await owner.post(path, { email, role: 'developer' })
  assert.equal(answer.status, 201, answer.text)
  return { owner, project, path, id: answer.body.id as number }
}

const idsOf = ({ body }: { body: { data: { id: number }[] } }) => body.data.map(({ id }) => id)

describe('invitations.list', () => {
  test('shows only the pending invitations to this address, newest first', async () => {
    const [grace, other] = [await stranger(), await stranger()]
    const first = await invited(grace.user.email)
    const second = await invited(grace.user.email, 'Other shop')
    await invited(other.user.email)
    const answer = await grace.get('/invitations')
    assert.deepEqual(idsOf(answer), [second.id, first.id])
    const [{ invited_at, expires_at, ...shown }] = answer.body.data
    assert.deepEqual(shown, {
      id: second.id,
      project_id: second.project.id,
      project_name: 'Other shop',
      role: 'developer',
    })
    assert.equal(Date.parse(expires_at) - Date.parse(invited_at), 14 * 24 * 3_600_000)
    assert.deepEqual(idsOf(await grace.get('/invitations?limit=1')), [second.id])
  })

  test('omits withdrawn, accepted and expired invitations', async () => {
    const grace = await stranger()
    const withdrawn = await invited(grace.user.email)
    await withdrawn.owner.delete(`${withdrawn.path}/${withdrawn.id}`)
    const accepted = await invited(grace.user.email)
    assert.equal((await grace.post('/invitations/accept', { id: accepted.id })).status, 200)
    const expired = await invited(grace.user.email)
    await database.query(
      `update control.members set invited_at = invited_at - interval '14 days' where id = $1`,
      [expired.id],
    )
    assert.deepEqual(idsOf(await grace.get('/invitations')), [])
    for (const { id } of [withdrawn, accepted, expired]) {
      assertProblem(await grace.post('/invitations/accept', { id }), 404, 'not_found')
    }
  })
})

describe('invitations that cannot be accepted by id', () => {
  test('are not listed for an account without a verified address, until it is verified', async () => {
    const grace = await stranger()
    const { id } = await invited(grace.user.email)
    const setVerified = (isVerified: boolean) =>
      database.query('update control.users set email_verified = $2 where id = $1', [
        grace.user.id,
        isVerified,
      ])
    await setVerified(false)
    assert.deepEqual(idsOf(await grace.get('/invitations')), [])
    assertProblem(await grace.post('/invitations/accept', { id }), 404, 'not_found')
    await setVerified(true)
    assert.deepEqual(idsOf(await grace.get('/invitations')), [id])
    assert.equal((await grace.post('/invitations/accept', { id })).status, 200)
  })
})

describe('invitations.accept by id', () => {
  test('is available only to the account with the invited address', async () => {
    const grace = await stranger()
    const { id, project } = await invited(grace.user.email)
    const other = await stranger()
    const refused = await other.post('/invitations/accept', { id })
    assertProblem(refused, 404, 'not_found')
    assert.equal(refused.text, (await other.post('/invitations/accept', { id: 999_999_999 })).text)
    const unproved = await stranger()
    await database.query('update control.users set email_verified = false where id = $1', [unproved.user.id])
    const toUnproved = await invited(unproved.user.email)
    assertProblem(await unproved.post('/invitations/accept', { id: toUnproved.id }), 404, 'not_found')
    const answer = await grace.post('/invitations/accept', { id })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual([answer.body.user_id, answer.body.name], [grace.user.id, grace.user.name])
    assert.equal((await grace.get(`/projects/${project.id}`)).status, 200)
  })

  test('is rejected for a member, whose role does not change', async () => {
    const grace = await stranger()
    const { id, owner, project, path } = await invited('another.address@example.org')
    await make.makeMember(project.id, { email: grace.user.email, role: 'viewer', reason: 'Needed' })
    await database.query('update control.members set email = $2 where project_id = $1 and user_id = $3', [
      project.id,
      'before@example.org',
      grace.user.id,
    ])
    await owner.delete(`${path}/${id}`)
    const again = await owner.post(path, { email: grace.user.email, role: 'admin' })
    assert.equal(again.status, 201, again.text)
    assert.deepEqual(idsOf(await grace.get('/invitations')), [])
    const refused = await grace.post('/invitations/accept', { id: again.body.id })
    assertProblem(refused, 409, 'already_exists')
    assert.match(refused.body.message, /viewer/)
  })

  test('joins once for concurrent requests', async () => {
    const grace = await stranger()
    const { id } = await invited(grace.user.email)
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => grace.post('/invitations/accept', { id })),
    )
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  })

  test('accepts a token or an id, but not both', async () => {
    const grace = await stranger()
    for (const body of [{}, { id: 1, token: 'inv_x' }, { id: 'x' }]) {
      assertProblem(await grace.post('/invitations/accept', body), 422, 'validation_failed')
    }
  })
})
