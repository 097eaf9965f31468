import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { customers } from '../../../testing/fixtures/customers.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { doChores } from '../../../worker/chores.ts'

/** Rows left over from sign-ins and invitations are deleted in bounded batches. */
const database = await testDatabase()
const api = await startApi(database)
const { ownProject, stranger } = await customers(api, database)

const count = async (table: string): Promise<number> =>
  Number((await database.query<{ count: string }>(`select count(*) from ${table}`))[0]?.count)

describe('the chores', () => {
  test('delete only expired sessions, challenges, used codes and counters', async () => {
    const { user } = await stranger()
    await database.query(`
      insert into control.sessions (user_id, token, expires_at, created_at)
      select ${user.id}, 't' || n, now() + (n - 3) * interval '1 day' + interval '1 hour', now() - interval '3 days'
        from generate_series(1, 4) as n;
      insert into control.verifications (identifier, value, expires_at)
      select '2fa-' || n, '${user.id}', now() + (n - 3) * interval '1 day' from generate_series(1, 4) as n;
      insert into control.used_totp_codes (user_id, code_hash, used_at)
      select ${user.id}, sha256(n::text::bytea), now() - n * interval '20 hours' from generate_series(1, 2) as n;
      insert into control.sign_in_rates (key, count, last_request)
      select 'k' || n, 1, (extract(epoch from now() - n * interval '20 hours') * 1000)::bigint
        from generate_series(1, 2) as n`)
    await doChores(workerDeps(api.context))
    const left = await database.query<{ token: string }>('select token from control.sessions order by token')
    assert.deepEqual(
      left.map(({ token }) => token),
      ['t2', 't3', 't4'],
    )
    assert.equal(await count('control.verifications'), 2)
    assert.equal(await count('control.used_totp_codes'), 1)
    assert.equal(await count(`control.sign_in_rates where key like 'k_'`), 1)
  })

  test('continue after a full batch until nothing is left', async () => {
    await database.query(`
      insert into control.verifications (identifier, value, expires_at)
      select 'old-' || n, '1', now() - interval '2 days' from generate_series(1, 12000) as n`)
    await doChores(workerDeps(api.context))
    assert.equal(await count(`control.verifications where identifier like 'old-%'`), 0)
  })

  test('delete invitations a month after they expired, and record it in the activity', async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}/members`
    const [old, recent] = [
      await owner.post(path, { email: 'old@example.org', role: 'viewer' }),
      await owner.post(path, { email: 'recent@example.org', role: 'viewer' }),
    ]
    await database.query(`update control.members set invited_at = now() - interval '45 days' where id = $1`, [
      old.body.id,
    ])
    await database.query(`update control.members set invited_at = now() - interval '20 days' where id = $1`, [
      recent.body.id,
    ])
    await doChores(workerDeps(api.context))
    const { data } = (await owner.get(path)).body
    assert.deepEqual(
      data.map(({ email }: { email: string }) => email),
      ['recent@example.org', owner.user.email],
    )
    const [entry] = (await owner.get(`/projects/${project.id}/activity`)).body.data
    assert.deepEqual(
      [entry.operation, entry.actor.type, entry.before.email],
      ['invitations.expire', 'system', 'old@example.org'],
    )
  })
})
