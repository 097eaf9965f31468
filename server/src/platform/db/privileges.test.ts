import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { customerQueues, type QueueName, queues } from '../jobs/queues.ts'

/**
 * The restrictions that PostgreSQL enforces on each database role, regardless of what the application
 * does.
 */
const database = await testDatabase()
const opened = openDatabase(database)

const denied = /permission denied/

const attempt = (role: 'admin' | 'mail' | 'identity', statement: string) =>
  opened.as(role).transaction((tx) => sql.raw(statement).execute(tx))

describe('database roles', () => {
  test('no SECURITY DEFINER function can be executed by PUBLIC', async () => {
    const open = await database.query(
      `select oid::regprocedure::text from pg_proc
      where prosecdef and has_function_privilege('public', oid, 'execute')
        and pronamespace in ('control'::regnamespace, 'mail'::regnamespace, 'postern'::regnamespace)`,
    )
    assert.deepEqual(open, [])
  })

  test('the sign-in role cannot grant administrator rights or enable a disabled user', async () => {
    await database.query(`insert into control.users (email, name) values ('eve@example.com', 'Eve')`)
    for (const change of [
      ...[`role = 'admin'`, `rights = 'full'`, 'is_active = true'],
      ...['token_generation = 1', 'version = 9'],
    ]) {
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

  test('the administrative role can revoke sessions but cannot read tokens or credentials', async () => {
    await assert.rejects(attempt('admin', 'select token from control.sessions'), denied)
    for (const table of ['accounts', 'two_factors', 'verifications', 'signing_keys']) {
      await assert.rejects(attempt('admin', `select * from control.${table}`), denied, table)
    }
    await assert.rejects(attempt('admin', 'select token_hash from control.password_resets'), denied)
    await assert.rejects(
      attempt('admin', `insert into control.password_resets (user_id, expires_at) values (1, now())`),
      denied,
    )
    await attempt('admin', 'delete from control.sessions where user_id = 1')
  })

  test('the customer role cannot set verification states, read secrets, choose ids or read users', async () => {
    const id = await createProject('Shop')
    for (const statement of [
      `update control.domains set status = 'verified'`,
      'update control.domains set verified_at = now()',
      'update control.domains set failing_since = null',
      `update control.identities set registered_at = now()`,
      `update control.dkim_keys set state = 'active'`,
      `update control.dns_records set status = 'verified'`,
      'update control.projects set is_locked = false',
      'update control.projects set allow_service_mta = true',
      'update control.projects set admin_plan_id = 1',
      'update control.project_stats set score_offset = 100',
      `update control.members set user_id = 1`,
      'update control.routes set forward_confirmed_at = now()',
      `update control.domains set verified_name = 'a.example'`,
      'select digest from control.name_tombstones',
      'select address from control.platform_suppressions',
      'select text from control.notes',
      'select token_hash from control.forward_confirmations',
      'delete from control.forward_confirmation_mails',
      'select kind from control.system_mails',
      `insert into control.system_mails (kind, subject_id, expires_at) values ('invitation', 1, now())`,
      `select control.add_system_mail('password_reset', 1, null, now())`,
      'update control.members set invitation_hash = null',
      `insert into control.projects (name, user_id, plan_id) values ('Mine', 1, 1)`,
      `insert into control.members (id, project_id, email, role) overriding system value values (7, ${id}, 'a@example.com', 'viewer')`,
      `insert into control.domains (project_id, name, mta_provider, ownership_token, status) values (${id}, 'a.example', 'ses', 'x', 'verified')`,
      'delete from control.projects',
      'delete from control.identities',
      'select secret_hash from control.api_keys',
      'select encrypted_secret from control.endpoints',
      'select encrypted_private_key from control.dkim_keys',
      'select invitation_hash from control.members',
      'select email from control.users',
      'select data from jobs.job',
      "select control.create_invited_user(sha256('x'), 'Mallory')",
    ]) {
      await assert.rejects(asCustomer(id, statement), denied, statement)
    }
    await asCustomer(id, `update control.projects set name = 'Renamed'`)
  })

  test('the customer role can send jobs only to its own queues and for its own project', async () => {
    const [mine, theirs] = [await createProject('Sends'), await createProject('Targeted')]
    const job = (queue: string, data: object) =>
      asCustomer(
        mine,
        `insert into jobs.job_common (name, data) values ('${queue}', '${JSON.stringify(data)}')`,
      )
    for (const queue of Object.keys(queues) as QueueName[]) {
      if (customerQueues.includes(queue)) await job(queue, { project_id: mine })
      else await assert.rejects(job(queue, { project_id: mine }), /violates row-level security policy/, queue)
    }
    await job('identities.reconcile', { identity_id: 1 })
    for (const data of [{ project_id: theirs, domain_id: 1 }, { project_id: null }]) {
      await assert.rejects(job('domains.check', data), /violates row-level security policy/)
    }
    await assert.rejects(
      asCustomer(
        mine,
        `insert into jobs.job (name, data) values ('domains.check', '{"project_id":${mine}}')`,
      ),
      denied,
    )
    const [row] = await database.query('select count(*)::int from jobs.job')
    assert.deepEqual(row, { count: customerQueues.length + 1 })
  })

  test("SECURITY DEFINER functions are limited to the transaction's project", async () => {
    const [mine, theirs] = [await createProject('Mine'), await createProject('Theirs')]
    const [domain] = await database.query<{ id: string }>(
      `insert into control.domains (project_id, name, mta_provider, ownership_token, status)
       values ($1, 'proved.example', 'ses', 'x', 'verified') returning id`,
      [theirs],
    )
    await asCustomer(mine, `select control.reset_verification(${theirs}, ${domain?.id})`)
    await asCustomer(mine, 'select control.delete_project()')
    const left = await database.query<{ name: string; status: string | null }>(
      `select projects.name, domains.status from control.projects as projects
         left join control.domains as domains on domains.project_id = projects.id
        where projects.id = any($1)`,
      [[mine, theirs]],
    )
    assert.deepEqual(left, [{ name: 'Theirs', status: 'verified' }])
    await asCustomer(theirs, `select control.reset_verification(${theirs}, ${domain?.id})`)
    const [after] = await database.query<{ status: string }>(
      'select status from control.domains where id = $1',
      [domain?.id],
    )
    assert.equal(after?.status, 'pending')
  })

  test('the mail role cannot write control, and the administrative role cannot write mail', async () => {
    assert.deepEqual(await writableTables('postern_mail', 'control'), [])
    assert.deepEqual(await writableTables('postern_admin', 'mail'), [])
  })

  test('the read-only role cannot read secrets or write', async () => {
    const secrets = [
      'encrypted_secret from control.endpoints',
      'secret_hash from control.api_keys',
      'encrypted_private_key from control.dkim_keys',
      'invitation_hash from control.members',
      'wrapped_key from control.project_keys',
      'token from control.sessions',
      'password from control.accounts',
      'token_hash from control.password_resets',
      'secret from control.two_factors',
      'private_key from control.signing_keys',
      'content from mail.bodies',
      'content from mail.waiting_bodies',
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

  test('audit rows are immutable, even for the owner', async () => {
    await database.query(`insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id,
      operation, resource_type, resource_id, xid, prev_hash, hash)
      values (0, 1, now(), 'person', 1, sha256('a'), 'r', 'plans.edit', 'plan', 1, pg_current_xact_id(), sha256('b'),
        sha256('c'))`)
    for (const statement of [
      'update control.audit set reason = null',
      'delete from control.audit',
      'truncate control.audit',
    ]) {
      await assert.rejects(attempt('admin', statement), denied, statement)
      await assert.rejects(database.query(statement), /append-only/, statement)
    }
  })

  test('the application login is not the owner and cannot become the owner', async () => {
    await assert.rejects(attempt('admin', 'set role postern_owner'), /permission denied/)
    await assert.rejects(attempt('admin', 'alter table control.plans add column x int'), /must be owner/)
  })

  test('no role can call the procedures that set up tables', async () => {
    await assert.rejects(attempt('admin', `call postern.protect('control.plans')`), denied)
  })
})

const asCustomer = (projectId: number, statement: string) =>
  opened
    .asCustomer()
    .forProject(projectId)
    .transaction((tx) => sql.raw(statement).execute(tx))

async function createProject(name: string): Promise<number> {
  const [row] = await database.query<{ id: string }>(
    `with plan as (
       ${insertPlans()} returning id
     ), owner as (
       insert into control.users (email, name) values (lower($1) || '@example.net', $1) returning id
     )
     insert into control.projects (name, user_id, plan_id) select $1, owner.id, plan.id from plan, owner returning id`,
    [name],
  )
  return Number(row?.id)
}

const writableTables = (role: string, ...schemas: string[]) =>
  database.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = any($2)
      and (has_any_column_privilege($1, format('%I.%I', schemaname, tablename), 'insert, update')
        or has_table_privilege($1, format('%I.%I', schemaname, tablename), 'delete, truncate'))`,
    [role, schemas],
  )
