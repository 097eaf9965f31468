import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import pg from 'pg'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import type { Db } from './db.ts'
import { roleName } from './roles.ts'

/** Row-level security of every table in the catalog. A new table without a policy fails here. */
const database = await testDatabase()
/** The customer role has all privileges here, so that only the policies protect the rows. */
const grantedDatabase = await testDatabase()

/** Tables without a project. Every other table must have a project_id and a policy. */
const globalTables = [
  'control.account_changes',
  'control.accounts',
  'control.audit_checkpoints',
  'control.audit_covered',
  'control.audit_heads',
  'control.bulk_actions',
  'control.daily_counts',
  'control.dispatch_holds',
  'control.email_changes',
  'control.external_logins',
  'control.external_sign_ins',
  'control.heartbeat',
  'control.lookups',
  'control.name_tombstones',
  'control.passkeys',
  'control.password_resets',
  'control.plan_rechecks',
  'control.plans',
  'control.platform_suppressions',
  'control.policies',
  'control.policy_progress',
  'control.sessions',
  'control.sign_in_failures',
  'control.sign_in_rates',
  'control.sign_ups',
  'control.signing_keys',
  'control.two_factors',
  'control.used_totp_codes',
  'control.user_activity',
  'control.user_activity_heads',
  'control.user_activity_people',
  'control.users',
  'control.verifications',
  'mail.control_applied',
  'mail.mailbox_provider_progress',
  'mail.mailbox_provider_totals',
  'mail.sending_totals',
]

/** Values that satisfy CHECK constraints; other columns get a default by type. */
const samples: Record<string, Record<string, string>> = {
  'control.members': { role: `'viewer'` },
  'control.domains': { mta_provider: `'service'` },
  'control.interventions': { kind: `'warn'`, source: `'administrator'` },
  'control.firings': { outcome: `'recorded'` },
  'control.attention': { cause: `'over_plan'` },
  'control.bulk_items': { state: `'pending'`, error: 'null', message: 'null' },
  'control.discards': { finished_at: 'now()' },
  'control.evidence': { message_ids: `'{}'` },
  'control.reversals': { field: `'admin_plan_id'`, original: `'1'`, override: `'2'` },
  'control.queue_restrictions': { kind: `'hold'` },
  'control.system_mails': { kind: `'invitation'`, outcome: 'null', finished_at: 'null' },
  'control.identities': { provider: `'service'`, domain_id: `nextval('sample')` },
  'control.dkim_keys': { encrypted_private_key: `'\\x00'` },
  'control.dns_records': { purpose: `'dkim'`, type: `'TXT'` },
  'control.endpoints': { secret_hint: `'abcd'` },
  'control.routes': { match: `'catch_all'`, action: `'drop'` },
  'control.audit': { chain: '$1', xid: 'pg_current_xact_id()', actor_kind: `'person'` },
  'control.audit_people': { part: `'actor'`, salt: `'\\x00112233445566778899aabbccddeeff'` },
  'control.project_activity': { actor_type: `'user'` },
  'control.project_activity_people': { salt: `'\\x00112233445566778899aabbccddeeff'` },
  'mail.recipients': { kind: `'to'`, status: `'queued'` },
  'mail.bodies': { format: `'json'` },
  'mail.waiting_bodies': { format: `'json'` },
  'mail.dispatch': { provider: `'service'` },
  'mail.attempt_results': { type: `'sent'` },
  'mail.attempts': { outcome: `'sent'` },
  'mail.delivery_attempts': { outcome: `'failed'` },
  'mail.suppressions': { reason: `'manual'` },
  'mail.inbound': { action: `'drop'` },
  'mail.usage': { period: `'day'` },
}

const defaultsByType: Record<string, string> = {
  bigint: "nextval('sample')",
  smallint: '1',
  integer: '1',
  'double precision': '1',
  text: `'x' || nextval('sample')`,
  boolean: 'false',
  uuid: 'postern.uuid7(now())',
  bytea: `sha256(nextval('sample')::text::bytea)`,
  json: `'{}'`,
  jsonb: `'{}'`,
  date: 'current_date',
  inet: `'192.0.2.1'`,
  'text[]': `'{}'`,
  'timestamp with time zone': 'now()',
}

const mine = 1
const theirs = 2

interface Table {
  name: string
  projectColumn: string | null
  isProtected: boolean
  isForced: boolean
}

const tables = await database.query<{ [K in keyof Table]: Table[K] }>(`
  select format('%I.%I', n.nspname, c.relname) as name, c.relrowsecurity as "isProtected",
         c.relforcerowsecurity as "isForced",
         case when c.oid = 'control.projects'::regclass then 'id'
              else (select a.attname from pg_attribute a where a.attrelid = c.oid and a.attname = 'project_id') end
           as "projectColumn"
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname in ('control', 'mail') and c.relkind in ('r', 'p') and not c.relispartition
   order by 1`)
const owned = tables.flatMap(({ name, projectColumn }) =>
  projectColumn === null ? [] : [{ name, projectColumn }],
)

const customer = new pg.Client({
  connectionString: grantedDatabase.url,
  options: `-c role=${roleName('customer')}`,
})
await customer.connect()
cleanUp(() => customer.end())
await grantEverything()

describe('the catalog', () => {
  test('every table is either listed as global or owned by a project', () => {
    const global = tables.filter(({ projectColumn }) => projectColumn === null).map(({ name }) => name)
    assert.deepEqual(global, globalTables)
    assert.ok(owned.length >= 25, `${owned.length} tables are owned by a project`)
  })

  test('every project-owned table has forced row-level security and a policy for each role with access', async () => {
    for (const { name, isProtected, isForced, projectColumn } of tables) {
      if (projectColumn === null) continue
      assert.ok(isProtected && isForced, `${name} is not protected: call postern.protect('${name}')`)
      const policies = await database.query<{
        role: string
        cmd: string
        using: string
        check: string | null
      }>(
        `select unnest(roles)::text as role, cmd, qual as using, with_check as check from pg_policies
          where format('%I.%I', schemaname, tablename) = $1 and permissive = 'PERMISSIVE' order by 1`,
        [name],
      )
      assert.deepEqual(
        policies,
        [
          { role: 'postern_admin', cmd: 'ALL', using: 'true', check: null },
          {
            role: 'postern_customer',
            cmd: 'ALL',
            using: `(${projectColumn} = postern.current_project())`,
            check: null,
          },
          { role: 'postern_mail', cmd: 'ALL', using: 'true', check: null },
          { role: 'postern_readonly', cmd: 'SELECT', using: 'true', check: null },
        ],
        name,
      )
    }
  })

  test("a domain's rows are hidden from a caller that is bound to another domain", async () => {
    const policies = await database.query<{ name: string; role: string; cmd: string; using: string }>(
      `select format('%I.%I', schemaname, tablename) as name, unnest(roles)::text as role, cmd, qual as using
         from pg_policies where permissive = 'RESTRICTIVE' order by 1`,
    )
    const ofDomain = (column: string) =>
      `((postern.current_domain() IS NULL) OR (${column} = postern.current_domain()))`
    const common = { role: 'postern_customer', cmd: 'ALL' }
    const [keys, ...others] = policies
    assert.match(keys?.using ?? '', /current_domain\(\) IS NULL\) OR \(EXISTS .*identities\.id = dkim_keys/s)
    assert.deepEqual({ ...keys, using: '' }, { name: 'control.dkim_keys', ...common, using: '' })
    assert.deepEqual(others, [
      { name: 'control.dns_records', ...common, using: ofDomain('domain_id') },
      { name: 'control.domains', ...common, using: ofDomain('id') },
      { name: 'control.identities', ...common, using: ofDomain('domain_id') },
      { name: 'control.routes', ...common, using: ofDomain('domain_id') },
    ])
  })

  test('the sign-in role has no access to project-owned tables', async () => {
    const reachable = await database.query<{ name: string }>(
      `select name from unnest($1::text[]) as name
        where has_any_column_privilege('postern_identity', name, 'select, insert, update, references')`,
      [owned.map(({ name }) => name)],
    )
    assert.deepEqual(reachable, [])
  })

  test('every object belongs to the owner role', async () => {
    const others = await database.query(`
      select c.oid::regclass::text, c.relowner::regrole::text as owner
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname in ('control', 'mail', 'postern') and c.relowner <> 'postern_owner'::regrole`)
    assert.deepEqual(others, [])
  })
})

describe("as the customer role, another project's rows do not exist", () => {
  for (const { name, projectColumn } of owned) {
    test(name, async () => {
      await insertSample(name, projectColumn, mine)
      await insertSample(name, projectColumn, theirs)
      const touch = `update ${name} set ${projectColumn} = ${projectColumn}`

      assert.equal(await countAs(undefined, `select from ${name}`), 0, 'no rows without a project')
      assert.equal(await countAs(mine, `select from ${name}`), 1)
      assert.equal(await countAs(theirs, `select from ${name}`), 1)
      assert.equal(await countAs(mine, `select from ${name} where ${projectColumn} = ${theirs}`), 0)
      if (projectColumn !== 'id') {
        assert.equal(
          await countAs(mine, touch),
          1,
          'an update without a condition affects only the project’s row',
        )
        assert.equal(await countAs(mine, `${touch} where ${projectColumn} = ${theirs}`), 0)
        await assert.rejects(countAs(mine, `update ${name} set project_id = ${theirs}`), /row-level security/)
      } else {
        assert.equal(await countAs(mine, `update ${name} set name = 'x' where id = ${theirs}`), 0)
        assert.equal(await countAs(mine, `update ${name} set name = 'x'`), 1)
      }
      assert.equal(await countAs(mine, `delete from ${name} where ${projectColumn} = ${theirs}`), 0)
      const before = await rowsOf(name, projectColumn, theirs)
      assert.equal(
        await countAs(mine, `delete from ${name}`),
        1,
        'a delete without a condition affects only the project’s row',
      )
      assert.deepEqual(await rowsOf(name, projectColumn, theirs), before)
      assert.equal(before.length, 1)
      await assert.rejects(insertAs(name, projectColumn, mine, theirs), /row-level security/)
    })
  }

  /** Runs the statement in a transaction, with or without a project, and returns the number of rows. */
  async function countAs(
    project: number | undefined,
    statement: string,
    values: unknown[] = [],
  ): Promise<number> {
    await customer.query('begin')
    try {
      await customer.query(`select set_config('postern.project_id', $1, true)`, [
        project === undefined ? '' : String(project),
      ])
      const { rowCount } = await customer.query(statement, values)
      await customer.query('commit')
      return rowCount ?? 0
    } catch (error) {
      await customer.query('rollback')
      throw error
    }
  }

  async function insertAs(
    name: string,
    projectColumn: string,
    project: number,
    rowProject: number,
  ): Promise<number> {
    return countAs(project, await insertStatement(name, projectColumn), [rowProject])
  }
})

describe('a connection returned to the pool', () => {
  const opened = openDatabase(database, { poolSize: 1 })
  const settingIn = async (db: Db) => {
    const setting = sql<{
      project: string | null
    }>`select nullif(current_setting('postern.project_id', true), '') as project`
    const { rows } = await db.read((tx) => setting.execute(tx))
    return rows[0]?.project
  }
  const scoped = (projectId: number) => opened.asCustomer().forProject(projectId)
  // The customer role without a project; only possible with a cast.
  const unscoped = opened.as('customer' as never)

  test('keeps no project after a commit, a failure or a rollback', async () => {
    assert.equal(await settingIn(scoped(7)), '7')
    assert.equal(await settingIn(unscoped), null)
    const failing = scoped(8).transaction(async () => {
      throw new Error('rolled back')
    })
    await assert.rejects(failing, /rolled back/)
    assert.equal(await settingIn(unscoped), null)
    assert.equal(await settingIn(scoped(9)), '9')
    assert.equal(await settingIn(unscoped), null)
  })
})

async function grantEverything(): Promise<void> {
  await grantedDatabase.query('create sequence sample start 1000')
  await grantedDatabase.query(`grant usage on sequence sample to ${roleName('customer')}`)
  await grantedDatabase.query(
    `grant usage on all sequences in schema control, mail to ${roleName('customer')}`,
  )
  await grantedDatabase.query(`grant all on all tables in schema control, mail to ${roleName('customer')}`)
  for (const table of ['control.audit', 'control.project_activity'])
    await grantedDatabase.query(`alter table ${table} disable trigger append_only`)
  const partitioned = await grantedDatabase.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relkind = 'p' and relnamespace = 'mail'::regnamespace`,
  )
  for (const { name } of partitioned)
    await grantedDatabase.query(`create table ${name}_all partition of ${name} default`)
}

async function insertSample(name: string, projectColumn: string, project: number): Promise<void> {
  const client = new pg.Client({ connectionString: grantedDatabase.superuserUrl })
  await client.connect()
  try {
    // Disables foreign keys, which are not tested here.
    await client.query(`set session_replication_role = replica`)
    await client.query(
      await insertStatement(name, projectColumn),
      projectColumn === undefined ? [] : [project],
    )
  } finally {
    await client.end()
  }
}

/** An INSERT of all required columns, with the project as $1. */
async function insertStatement(name: string, projectColumn: string): Promise<string> {
  const columns = await grantedDatabase.query<{ column: string; type: string }>(
    `select attname as column, coalesce(nullif(typbasetype, 0)::regtype::text, atttypid::regtype::text) as type
       from pg_attribute join pg_type on pg_type.oid = atttypid
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''
        and (attname = $2 or attname = any($3) or (attnotnull and not atthasdef and attidentity = ''))`,
    [name, projectColumn, Object.keys(samples[name] ?? {})],
  )
  const values = columns.map(({ column, type }) => {
    if (column === projectColumn) return '$1::bigint'
    const value = samples[name]?.[column] ?? defaultsByType[type]
    assert.ok(value, `${name}.${column}: no sample for ${type}`)
    return value
  })
  const names = columns.map(({ column }) => column).join(', ')
  return `insert into ${name} (${names}) overriding system value values (${values.join(', ')})`
}

const rowsOf = (name: string, projectColumn: string, project: number) =>
  grantedDatabase.query(`select t::text from ${name} t where ${projectColumn} = $1 order by 1`, [project])
