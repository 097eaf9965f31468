import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { openDatabase, testDatabase } from '../../testing/database.ts'

/** What each database role cannot do, whatever the code above it tries. */
const database = await testDatabase()
const opened = openDatabase(database)

const denied = /permission denied/

const attempt = (role: 'admin' | 'mail' | 'identity', statement: string) =>
  opened.as(role).transaction((tx) => sql.raw(statement).execute(tx))

describe('database roles', () => {
  test('nobody but its owner executes a function that acts as its owner', async () => {
    const open = await database.query(
      `select oid::regprocedure::text from pg_proc
      where prosecdef and has_function_privilege('public', oid, 'execute')
        and pronamespace in ('control'::regnamespace, 'mail'::regnamespace, 'postern'::regnamespace)`,
    )
    assert.deepEqual(open, [])
  })

  test('the sign-in role can make nobody an administrator and revive no disabled user', async () => {
    await database.query(`insert into control.users (email, name) values ('eve@example.com', 'Eve')`)
    for (const change of [`role = 'admin'`, 'is_active = true', 'token_generation = 1', 'version = 9']) {
      await assert.rejects(attempt('identity', `update control.users set ${change}`), denied, change)
    }
    await assert.rejects(
      attempt(
        'identity',
        `insert into control.users (email, name, role) values ('mallory@example.com', 'M', 'admin')`,
      ),
      denied,
    )
    await attempt('identity', `update control.users set name = 'Eve, still a user'`)
  })

  test('the administrative role ends sessions without being able to read their tokens, and reads no credential', async () => {
    await assert.rejects(attempt('admin', 'select token from control.sessions'), denied)
    for (const table of ['accounts', 'two_factors', 'verifications', 'signing_keys']) {
      await assert.rejects(attempt('admin', `select * from control.${table}`), denied, table)
    }
    await attempt('admin', 'delete from control.sessions where user_id = 1')
  })

  test('the mail role writes nothing in control, the administrative role nothing in mail', async () => {
    assert.deepEqual(await writableTables('postern_mail', 'control'), [])
    assert.deepEqual(await writableTables('postern_admin', 'mail'), [])
  })

  test('the read-only role sees no secret and writes nothing', async () => {
    const secrets = [
      'encrypted_secret from control.endpoints',
      'secret_hash from control.api_keys',
      'encrypted_private_key from control.dkim_keys',
      'invitation_hash from control.members',
      'wrapped_key from control.project_keys',
      'token from control.sessions',
      'password from control.accounts',
      'secret from control.two_factors',
      'private_key from control.signing_keys',
      'content from mail.bodies',
    ]
    for (const secret of secrets) {
      await assert.rejects(
        database.query(`set local role postern_readonly; select ${secret}`),
        denied,
        secret,
      )
    }
    assert.deepEqual(await writableTables('postern_readonly', 'control', 'mail'), [])
  })

  test('nobody changes an audit row, not even the owner', async () => {
    await database.query(`insert into control.audit (chain, seq, at, actor_id, actor_digest, request_id, operation,
      resource_type, resource_id, xid, prev_hash, hash)
      values (0, 1, now(), 1, sha256('a'), 'r', 'plans.edit', 'plan', 1, pg_current_xact_id(), sha256('b'), sha256('c'))`)
    for (const statement of [
      'update control.audit set reason = null',
      'delete from control.audit',
      'truncate control.audit',
    ]) {
      await assert.rejects(attempt('admin', statement), denied, statement)
      await assert.rejects(database.query(statement), /append-only/, statement)
    }
  })

  test('the login of the application is not the owner and cannot become one', async () => {
    await assert.rejects(attempt('admin', 'set role postern_owner'), /permission denied/)
    await assert.rejects(attempt('admin', 'alter table control.plans add column x int'), /must be owner/)
  })

  test('no role can call the procedures that set up tables', async () => {
    await assert.rejects(attempt('admin', `call postern.protect('control.plans')`), denied)
  })
})

const writableTables = (role: string, ...schemas: string[]) =>
  database.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = any($2)
      and (has_any_column_privilege($1, format('%I.%I', schemaname, tablename), 'insert, update')
        or has_table_privilege($1, format('%I.%I', schemaname, tablename), 'delete, truncate'))`,
    [role, schemas],
  )
