import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Acceptance } from '../../core/mail/messages/acceptance.ts'
import { readDraft } from '../../core/mail/messages/draft.ts'
import { ampleByteLimits } from '../../testing/fixtures/byte-limits.ts'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { emptyDatabase, openDatabase, type TestDatabase } from '../../testing/harness/database.ts'
import { type Cell, Cells, cellIn, shardCount, shardOf } from './cells.ts'
import { type DatabaseKind, publicationName, publishedTables } from './database-kind.ts'
import { migrate } from './migrate.ts'

const asPart = (database: TestDatabase, part: DatabaseKind) =>
  migrate({ ownerUrl: database.superuserUrl, appUser: 'postern_app', part, log: () => {} })

const control = await emptyDatabase()
const cell = await emptyDatabase()
await asPart(control, 'control')
await asPart(cell, 'cell')

/** The combined privileges of all planes, by table. */
async function privileges(database: TestDatabase, schema: string): Promise<Map<string, string[]>> {
  const rows = await database.query<{ name: string; kinds: string[] }>(
    `select format('%s.%s', schemaname, tablename) as name,
            array(select kind from unnest(array['select', 'insert', 'update', 'delete', 'truncate']) as kind
                   where exists (
                     select from unnest(array['admin', 'customer', 'mail', 'identity']) as role
                      where case when kind in ('delete', 'truncate')
                                 then has_table_privilege('postern_' || role, format('%I.%I', schemaname, tablename), kind)
                                 else has_any_column_privilege('postern_' || role, format('%I.%I', schemaname, tablename), kind)
                            end)) as kinds
       from pg_tables where schemaname = $1`,
    [schema],
  )
  return new Map(rows.map(({ name, kinds }) => [name, kinds]))
}

describe('a shard', () => {
  test('has the same number in the program and in the database', async () => {
    const ids = [
      ...Array.from({ length: 2000 }, (_none, at) => at + 1),
      ...Array.from({ length: 500 }, () => Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)),
      Number.MAX_SAFE_INTEGER,
    ]
    const rows = await control.query<{ shard: number }>(
      'select postern.shard_of(id) as shard from unnest($1::bigint[]) with ordinality as ids (id, no) order by no',
      [ids],
    )
    assert.deepEqual(
      ids.map(shardOf),
      rows.map(({ shard }) => shard),
    )
  })

  test('is in exactly one cell, with its projects', () => {
    const database = openDatabase(cell)
    const half = (name: string, first: number): Cell =>
      cellIn(database, { name, shards: Array.from({ length: shardCount / 2 }, (_none, at) => first + at) })
    const cells = new Cells([half('a', 0), half('b', 512)])
    assert.equal(cells.ofShard(511).name, 'a')
    assert.equal(cells.ofShard(512).name, 'b')
    assert.equal(cells.of(1).name, shardOf(1) < 512 ? 'a' : 'b')
    assert.throws(() => new Cells([half('a', 0)]), /shard 512 is not assigned to a cell/)
    assert.throws(() => cells.ofShard(shardCount), /shard 1024 does not exist/)
  })
})

describe('a database in an installation with cells', () => {
  test('of kind control gives planes no access to mail and publishes the tables that cells need', async () => {
    const mail = await privileges(control, 'mail')
    assert.ok(mail.size > 20)
    for (const [table, kinds] of mail) assert.deepEqual(kinds, [], table)
    const published = await control.query<{ name: string }>(
      `select format('%s.%s', schemaname, tablename) as name from pg_publication_tables where pubname = $1`,
      [publicationName],
    )
    assert.deepEqual(published.map(({ name }) => name).sort(), publishedTables.toSorted())
  })

  test('of kind cell gives planes read access to the replicated tables only', async () => {
    const copied: readonly string[] = publishedTables
    for (const [table, kinds] of await privileges(cell, 'control')) {
      const isReadable = copied.includes(table) || table === 'control.api_key_stats'
      assert.deepEqual(kinds, isReadable ? ['select'] : [], table)
    }
    const routines = await cell.query<{ name: string }>(
      `select proname as name from pg_proc
        where pronamespace = 'control'::regnamespace and has_function_privilege('postern_customer', oid, 'execute')
          and prosecdef`,
    )
    assert.deepEqual(routines.map(({ name }) => name).sort(), ['is_platform_suppressed', 'mail_holder'])
  })

  test('is unchanged by a second migration', async () => {
    assert.deepEqual(await asPart(control, 'control'), [])
    assert.deepEqual(await asPart(cell, 'cell'), [])
  })

  test('is rejected if it contains data that belongs to the other side', async () => {
    await control.query(
      `insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
       values (postern.uuid7(now()), 1, 1, 'a@example.com', 1, 1)`,
    )
    await assert.rejects(asPart(control, 'control'), /This database contains mail/)
    await cell.query(`insert into control.users (email, name) values ('ada@example.com', 'Ada')`)
    await cell.query(
      `with plan as (
         ${insertPlans()} returning id)
       insert into control.projects (user_id, name, plan_id) select users.id, 'Shop', plan.id from control.users, plan`,
    )
    await assert.rejects(asPart(cell, 'cell'), /This database has its own projects/)
  })

  test('of kind cell does not send to addresses on the replicated suppression list for all projects', async () => {
    await cell.query(
      `with domain as (
         insert into control.domains (project_id, name, mta_provider, ownership_token, status)
         select id, 'shop.example', 'service', 'x', 'verified' from control.projects returning id, project_id
       ), allowed as (
         update control.projects set allow_service_mta = true
       )
       insert into control.identities (project_id, domain_id, name, provider)
       select project_id, id, 'shop.example', 'service' from domain`,
    )
    await cell.query(
      `insert into control.platform_suppressions (address, reason) values ('nobody@example.net', 'Needed')`,
    )
    const [project] = await cell.query<{ id: string }>('select id from control.projects')
    const acceptance = new Acceptance(openDatabase(cell).as('mail'), ['service'], ampleByteLimits)
    const { outcomes = [] } = (await acceptance.accept({
      sender: { projectId: Number(project?.id), apiKey: null, userId: 1 },
      mails: ['Nobody@example.net', 'somebody@example.net'].map((to) =>
        readDraft({ from: 'a@shop.example', to: [to], subject: '', text: '' }, Date.now()),
      ),
    })) as { outcomes?: object[] }
    assert.deepEqual(
      outcomes.map((one) => ('accepted' in one ? (one.accepted as { status: string }).status : one)),
      ['suppressed', 'queued'],
    )
  })
})
