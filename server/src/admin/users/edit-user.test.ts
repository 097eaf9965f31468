import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { CookieJar } from '../../testing/harness/cookie-jar.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { totpCode } from '../../testing/harness/totp.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makeProject, makeMember } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'Agreed in the weekly meeting'
const edit = (id: number, body: object) => admin.patch(`/users/${id}`, { reason, ...body })
const show = async (id: number) => (await admin.get(`/users/${id}`)).body

/** An administrator with a browser session, and a client with a token issued for it. */
async function signedInByBrowser() {
  const person = await api.makeAdmin()
  const browser = new CookieJar(api.url)
  await browser.post('/v1/auth/sign-in', { email: person.email, password: person.password })
  assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(person.totpUri) })).status, 204)
  const { token } = (await (await browser.post('/v1/auth/token')).json()) as { token: string }
  return { ...person, browser, client: new Client(api.url, token) }
}

describe('users.edit', () => {
  test('grants and revokes the admin role', async () => {
    const user = await makeUser()
    const before = await show(user.id)
    const raised = await edit(user.id, { role: 'admin' })
    assert.equal(raised.status, 200, raised.text)
    assert.deepEqual(raised.body, {
      ...before,
      ...{ role: 'admin', rights: 'full', updated_at: raised.body.updated_at },
    })
    assert.equal(raised.headers.get('etag'), '"2"')
    assert.deepEqual(await show(user.id), raised.body)
    const expected = {
      operation: 'users.edit',
      resource: ['user', user.id] as ['user', number],
      reason,
      subject: { email: user.email, name: user.name },
    }
    await assertAudited(raised, {
      ...expected,
      before: { role: 'user', rights: null, is_active: true, token_generation: 1 },
      after: { role: 'admin', rights: 'full', is_active: true, token_generation: 1 },
    })
    const lowered = await edit(user.id, { role: 'user' })
    assert.equal(lowered.body.role, 'user')
    await assertAudited(lowered, {
      ...expected,
      before: { role: 'admin', rights: 'full', is_active: true, token_generation: 1 },
      after: { role: 'user', rights: null, is_active: true, token_generation: 1 },
    })
  })

  test('disables a user and revokes their sessions, and enables them again', async () => {
    const user = await makeUser()
    await database.query(
      `insert into control.sessions (user_id, token, expires_at)
       select $1, gen_random_uuid(), postern.now() + n * interval '1 hour' from unnest(array[-1, 1, 2]) as n`,
      [user.id],
    )
    const disabled = await edit(user.id, { is_active: false })
    assert.equal(disabled.body.is_active, false)
    await assertAudited(disabled, {
      operation: 'users.edit',
      resource: ['user', user.id],
      reason,
      before: { role: 'user', rights: null, is_active: true, token_generation: 1, sessions: 2 },
      after: { role: 'user', rights: null, is_active: false, token_generation: 2, sessions: 0 },
      subject: { email: user.email, name: user.name },
    })
    assert.deepEqual(await database.query('select from control.sessions where user_id = $1', [user.id]), [])
    const enabled = await edit(user.id, { is_active: true })
    assert.equal(enabled.body.is_active, true)
    await assertAudited(enabled, {
      operation: 'users.edit',
      resource: ['user', user.id],
      reason,
      before: { role: 'user', rights: null, is_active: false, token_generation: 2 },
      after: { role: 'user', rights: null, is_active: true, token_generation: 2 },
      subject: { email: user.email, name: user.name },
    })
  })

  test('changes several fields together, in one audit row', async () => {
    const user = await makeUser()
    const answer = await edit(user.id, { role: 'admin', is_active: false, end_sessions: true })
    await assertAudited(answer, {
      operation: 'users.edit',
      resource: ['user', user.id],
      reason,
      before: { role: 'user', rights: null, is_active: true, token_generation: 1, sessions: 0 },
      after: { role: 'admin', rights: 'full', is_active: false, token_generation: 2, sessions: 0 },
      subject: { email: user.email, name: user.name },
    })
  })

  test("sets and keeps an administrator's rights", async () => {
    const user = await makeUser()
    const made = await edit(user.id, { role: 'admin', rights: 'support' })
    assert.deepEqual([made.status, made.body.role, made.body.rights], [200, 'admin', 'support'])
    await assertAudited(made, {
      ...{ operation: 'users.edit', resource: ['user', user.id], reason },
      before: { role: 'user', rights: null, is_active: true, token_generation: 1 },
      after: { role: 'admin', rights: 'support', is_active: true, token_generation: 1 },
      subject: { email: user.email, name: user.name },
    })
    assert.equal((await edit(user.id, { end_sessions: true })).body.rights, 'support')
    const same = await edit(user.id, { role: 'admin', rights: 'support' })
    await assertNotAudited(same)
    const raised = await edit(user.id, { rights: 'full' })
    assert.equal(raised.body.rights, 'full')
    await assertAudited(raised, {
      ...{ operation: 'users.edit', resource: ['user', user.id], reason },
      before: { role: 'admin', rights: 'support', is_active: true, token_generation: 2 },
      after: { role: 'admin', rights: 'full', is_active: true, token_generation: 2 },
      subject: { email: user.email, name: user.name },
    })
  })

  test('does not restore the rights of a former administrator', async () => {
    const user = await makeUser()
    await edit(user.id, { role: 'admin', rights: 'auditor' })
    assert.equal((await edit(user.id, { role: 'user' })).body.rights, null)
    assert.equal((await edit(user.id, { role: 'admin' })).body.rights, 'full')
  })

  test('keeps a disabled owner as the owner', async () => {
    const user = await makeUser()
    const project = await makeProject({ user_id: user.id })
    assert.equal((await edit(user.id, { is_active: false })).status, 200)
    assert.deepEqual((await admin.get(`/projects/${project.id}`)).body, project)
  })

  test('counts in a preview the projects that the user owns or is a member of', async () => {
    const user = await makeUser()
    const effects = async (body: object) =>
      (await admin.patch(`/users/${user.id}?dry_run=true`, { reason, ...body })).body.effects
    assert.deepEqual(await effects({ is_active: false }), [
      'Projects: owner of 0, member of 0.',
      'The user cannot sign in.',
      "Sessions revoked: 0. All of the user's access tokens become invalid.",
    ])
    await makeProject({ user_id: user.id })
    await makeProject({ user_id: user.id })
    await makeMember((await makeProject()).id, { email: user.email })
    assert.deepEqual(await effects({ role: 'admin' }), [
      'Projects: owner of 2, member of 1.',
      'The user has full access to every project.',
    ])
    assert.deepEqual((await effects({ role: 'admin', rights: 'auditor' })).slice(1), [
      'The user can read everything and change nothing.',
    ])
  })

  test('always requires a reason', async () => {
    const user = await makeUser()
    for (const body of [
      { role: 'admin' },
      { is_active: false },
      { end_sessions: true },
      { role: 'user' },
      {},
    ]) {
      const answer = await admin.patch(`/users/${user.id}`, body)
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assert.equal((await admin.get(`/users/${user.id}`)).headers.get('etag'), '"1"')
  })

  test('keeps the version and writes no audit row if nothing changes', async () => {
    const user = await makeUser()
    const before = await show(user.id)
    for (const body of [{}, { role: 'user' }, { is_active: true }, { end_sessions: false }]) {
      const answer = await edit(user.id, body)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, before)
      assert.equal(answer.headers.get('etag'), '"1"')
      await assertNotAudited(answer)
    }
  })

  test('rejects other fields and values', async () => {
    const user = await makeUser()
    const bodies = [
      { role: 'owner' },
      { role: null },
      { role: 'admin', rights: 'king' },
      { role: 'admin', rights: null },
      { rights: 'support' },
      { role: 'user', rights: 'full' },
      { is_active: 'false' },
      { is_active: null },
      { end_sessions: 1 },
      { email: 'other@example.org' },
      { two_factor_enabled: true },
      { token_generation: 1 },
    ]
    for (const body of bodies) assertProblem(await edit(user.id, body), 422, 'validation_failed')
    assert.equal((await admin.get(`/users/${user.id}`)).headers.get('etag'), '"1"')
  })

  test('returns 404 for a missing user', async () => {
    for (const id of [0, 999_999_999, Number.MAX_SAFE_INTEGER]) {
      assertProblem(await edit(id, { role: 'admin' }), 404, 'not_found')
    }
  })
})

describe('users.edit: valid tokens', () => {
  test('of a demoted administrator are rejected on the next request', async () => {
    const other = await signedIn(api)
    assert.equal((await other.get('/plans')).status, 200)
    assert.equal((await edit(other.userId, { role: 'user' })).status, 200)
    assertProblem(await other.get('/plans'), 403, 'admin_required')
  })

  test('of an administrator whose rights were lowered are limited on the next request', async () => {
    const other = await signedIn(api)
    const project = await makeProject()
    const lock = (is_locked: boolean) => other.patch(`/projects/${project.id}`, { is_locked, reason })
    assert.equal((await lock(true)).status, 200)
    assert.equal((await edit(other.userId, { rights: 'auditor' })).status, 200)
    assertProblem(await lock(false), 403, 'insufficient_rights')
    assert.equal((await other.get('/plans')).status, 200)
    assert.equal((await edit(other.userId, { rights: 'support' })).status, 200)
    assert.equal((await lock(false)).status, 200)
  })

  test('of a disabled administrator are rejected on the next request, even after the user is enabled again', async () => {
    // Otherwise the other user would be the last administrator with a second factor.
    await database.query('update control.users set two_factor_enabled = true where id = $1', [admin.userId])
    const [fromShell, fromBrowser] = [await signedIn(api), await signedInByBrowser()]
    for (const { userId, client } of [{ ...fromShell, client: fromShell }, fromBrowser]) {
      assert.equal((await client.get('/plans')).status, 200)
      await edit(userId, { is_active: false })
      assertProblem(await client.get('/plans'), 401, 'unauthenticated')
      await edit(userId, { is_active: true })
      assertProblem(await client.get('/plans'), 401, 'unauthenticated')
    }
    assert.equal((await fromBrowser.browser.post('/v1/auth/token')).status, 401)
    assert.equal((await new Client(api.url, await api.tokenOf(fromShell.email)).get('/plans')).status, 200)
  })

  test('of a user whose sessions were revoked are rejected on the next request, regardless of how they were issued', async () => {
    const [fromShell, fromBrowser] = [await signedIn(api), await signedInByBrowser()]
    for (const { userId, client, sessions } of [
      { ...fromShell, client: fromShell, sessions: 0 },
      { ...fromBrowser, sessions: 1 },
    ]) {
      const { email, name } = await show(userId)
      assert.equal((await client.get('/plans')).status, 200)
      const answer = await edit(userId, { end_sessions: true })
      assert.equal(answer.status, 200, answer.text)
      assertProblem(await client.get('/plans'), 401, 'unauthenticated')
      await assertAudited(answer, {
        operation: 'users.edit',
        resource: ['user', userId],
        reason,
        before: { role: 'admin', rights: 'full', is_active: true, token_generation: 1, sessions },
        after: { role: 'admin', rights: 'full', is_active: true, token_generation: 2, sessions: 0 },
        subject: { email, name },
      })
    }
    assert.equal((await fromBrowser.browser.post('/v1/auth/token')).status, 401)
    assert.equal((await new Client(api.url, await api.tokenOf(fromBrowser.email)).get('/plans')).status, 200)
  })

  test('of other users remain valid', async () => {
    const [one, other] = [await signedIn(api), await signedIn(api)]
    await edit(one.userId, { end_sessions: true })
    assert.equal((await other.get('/plans')).status, 200)
  })
})
