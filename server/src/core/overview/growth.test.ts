import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { openDatabase, type TestDatabase, testDatabase } from '../../testing/harness/database.ts'
import { rowsReadBy, sumOfRows } from '../../testing/harness/rows-read.ts'
import { isSplit } from '../../testing/harness/split-databases.ts'
import { recordStatements } from '../../testing/harness/statements.ts'
import { patienceMs } from '../../testing/harness/waiting.ts'
import { readOverview } from './overview.ts'

/** The full form has 1,000,000 projects. */
const many = Number(process.env['POSTERN_TEST_OVERVIEW_PROJECTS'] ?? 10_000)

/** Every project needs attention for every cause. Small tables are the same for any number of projects. */
async function fill(database: TestDatabase, count: number): Promise<void> {
  await database.query(`
    set session_replication_role = replica;
    insert into control.users (email, name) values ('owner@example.org', 'Owner');
    ${insertPlans({ max_domains: '0', max_users: '0' })};
    insert into control.projects (user_id, name, plan_id)
    select 1, 'Project ' || n, 1 from generate_series(1, ${count}) as n;
    insert into control.project_listing (project_id, folded_name, is_locked, plan_id, reputation_score, member_count)
    select id, lower(name), false, plan_id, 100, 1 from control.projects;
    insert into control.interventions (project_id, kind, source, reason)
    select id, 'lock', 'administrator', 'r' from control.projects;
    insert into control.domains (project_id, name, mta_provider, status, ownership_token)
    select id, 'd' || id || '.example.org', 'ses', 'verified', 'x' from control.projects;
    insert into control.attention (project_id, cause, since, resource_id)
    select id, cause, postern.now() - id % 1000 * interval '1 minute', case cause when 'firing' then 1 else id end
      from control.projects, unnest(array['intervention', 'firing', 'appeal', 'domain_failing', 'over_plan']) as cause;
    insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, project_id,
                               resource_type, resource_id, xid, prev_hash, hash)
    select n, 1, now(), 'person', 1, hash, 'r', 'projects.edit', n, 'project', n, pg_current_xact_id(), hash, hash
      from generate_series(1, 10000) as n, decode(repeat('00', 32), 'hex') as hash;
    insert into control.audit_people (audit_id, part, salt) select id, 'actor', decode(repeat('00', 16), 'hex') from control.audit;
    insert into control.audit_checkpoints (id, at, heads, key_id, prev_hash, hash, signature)
    select n, now() + interval '1 hour', '[]', 'k', sha256(n::text::bytea), sha256(n::text::bytea), decode(repeat('00', 64), 'hex')
      from generate_series(1, 10) as n;
    insert into mail.sending_totals
    select date_bin('5 minutes', postern.now(), 'epoch') - n * interval '5 minutes', 1, 1, 1, 1, 1, 1, 1, 1
      from generate_series(1, 360) as n;
    insert into mail.mailbox_provider_totals (hour_at, mailbox_provider, sent)
    select date_trunc('hour', postern.now(), 'UTC') - n * interval '1 hour', 'provider' || m, 1
      from generate_series(1, 100) as n, generate_series(1, 50) as m;
    insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
    select postern.uuid7(postern.now()), 0, n % 10, 1, 'service', 'a@example.net' from generate_series(1, 100) as n;
    reset session_replication_role`)
  await database.query('vacuum analyze')
}

describe('the overview', { skip: isSplit }, () => {
  test('reads the same number of rows with the same statements for any number of projects', async (t) => {
    const costs: { statements: number; read: Record<string, number> }[] = []
    for (const projects of [1_000, many]) {
      const database = await testDatabase()
      await fill(database, projects)
      const opened = openDatabase(database, { poolSize: 1 })
      const [db, mail] = [opened.as('admin'), opened.as('mail')]
      const deps = { db, cells: [{ name: 'mail', db: mail }] }
      // Reads the catalogs.
      await readOverview(deps, patienceMs)
      const statements = recordStatements(t)
      const overview = await readOverview(deps, patienceMs)
      const count = statements.count
      statements.stop()
      const read = await rowsReadBy(database, [db, mail], () => readOverview(deps, patienceMs))
      assert.equal(overview.attention.counts.over_plan, 1_000)
      assert.equal(overview.attention.newest.length, 50)
      assert.equal(overview.acts.length, 10)
      assert.equal(overview.queue.states.ready, 100)
      costs.push({ statements: count, read })
    }
    const [few, more] = costs
    t.diagnostic(
      `with 1,000 projects ${few?.statements} statements and ${sumOfRows(few?.read)} rows, ` +
        `with ${many} projects ${more?.statements} and ${sumOfRows(more?.read)}`,
    )
    assert.ok(sumOfRows(few?.read) > 0)
    assert.deepEqual(more, few)
  })
})
