import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { activityPage, activitySearch } from '../../core/control/activity/activity.ts'
import { searchAudit } from '../../core/control/audit/audit.ts'
import { listDenials } from '../../core/control/audit/denials.ts'
import { listLookups } from '../../core/control/audit/lookups.ts'
import { bulkDetail, findBulk, listBulkActions, listPending } from '../../core/control/bulk/bulk.ts'
import { listDiscards } from '../../core/control/discards/discards.ts'
import { listEndpoints } from '../../core/control/endpoints/endpoints.ts'
import { listEvidence } from '../../core/control/evidence/evidence.ts'
import { listInterventions } from '../../core/control/interventions/interventions.ts'
import { listNotices } from '../../core/control/interventions/notices.ts'
import { listMembers } from '../../core/control/members/members.ts'
import { listNotes } from '../../core/control/notes/notes.ts'
import { listPlatformSuppressions } from '../../core/control/platform-suppressions/platform-suppressions.ts'
import { listFirings } from '../../core/control/policies/firings.ts'
import { listProjectsOf } from '../../core/control/projects/customers.ts'
import { searchProjects } from '../../core/control/projects/search.ts'
import type { ProjectSort } from '../../core/control/projects/wire.ts'
import { searchUsers } from '../../core/control/users/users.ts'
import { listMessageEvents, listMessages, type MessageFilter } from '../../core/mail/messages/messages.ts'
import { findSenders, scanCell } from '../../core/mail/messages/search.ts'
import { listSuppressions } from '../../core/mail/suppressions/suppressions.ts'
import { findAddressed, findNamed } from '../../core/mail/trace/trace.ts'
import { sumIn, volumeRanges } from '../../core/mail/usage/volumes.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { planner } from '../../testing/expectations/query-plans.ts'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'

/**
 * No list reads a whole table, or any rows outside one index range, regardless of its parameters. This is verified
 * with PostgreSQL's own plans, on tables that are vacuumed and analysed as autovacuum leaves them. The tables are
 * small, so a sequential scan is cheap; on larger tables an index is even more attractive.
 */
const database = await testDatabase()
const plansOf = planner(database)

const count = 20_000
await database.query(`
  set session_replication_role = replica;
  insert into control.users (email, name, role, is_active)
  select 'person' || n || '@example.org', 'Person ' || md5(n::text), case when n % 5000 = 0 then 'admin' else 'user' end,
         n % 100 <> 0 from generate_series(1, ${count}) as n;
  ${insertPlans({ name: `'Plan ' || n`, max_domains: 'n', max_users: 'n' }, 'from generate_series(1, 20) as n')};
  insert into control.projects (user_id, name, is_locked, plan_id)
  select 1 + n % 1000, 'Project ' || md5(n::text), n % 100 = 0, 1 + floor(20 * power((n % 997) / 997.0, 3))
    from generate_series(1, ${count}) as n;
  insert into control.project_stats (project_id, computed_score)
  select id, 100 - floor(100 * power((id % 991) / 991.0, 4)) from control.projects;
  insert into control.members (project_id, email, role)
  select id, n || '@example.com', 'viewer' from control.projects, generate_series(1, 2) as n;
  insert into control.members (project_id, user_id, email, role, joined_at)
  select id, user_id, 'owner@example.com', 'owner', now() from control.projects;
  insert into control.endpoints (project_id, name, url, events, encrypted_secret, secret_hint)
  select id, 'Hook', 'https://example.com', '{}', '', 'abcd' from control.projects;
  insert into control.endpoint_stats (endpoint_id, project_id) select id, project_id from control.endpoints;
  insert into control.project_listing (project_id, folded_name, is_locked, plan_id, reputation_score, member_count)
  select id, lower(name), is_locked, plan_id, reputation_score, 2
    from control.projects join control.project_stats on project_id = id;
  insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, project_id,
                             resource_type, resource_id, xid, prev_hash, hash)
  select n % 200, n, now() - (${count} - n) * interval '1 minute', case n % 7 when 0 then 'shell' else 'person' end, n % 7, hash, 'r',
         (array['projects.edit', 'members.create', 'endpoints.edit', 'endpoints.rotate'])[1 + n % 4], nullif(n % 200, 0),
         (array['project', 'member', 'endpoint', 'endpoint'])[1 + n % 4], (n % 500)::text, pg_current_xact_id(), hash, hash
    from generate_series(1, ${count}) as n, decode(repeat('00', 32), 'hex') as hash;
  insert into control.audit_people (audit_id, part, salt) select id, 'actor', decode(repeat('00', 16), 'hex') from control.audit;
  insert into control.project_activity (project_id, seq, at, actor_type, actor_digest, request_id, operation, resource_type,
                                        prev_hash, hash)
  select n % 200, n, now(), 'user', hash, 'r' || n, 'endpoints.edit', 'endpoint', hash, hash
    from generate_series(1, ${count}) as n, decode(repeat('00', 32), 'hex') as hash;
  insert into control.project_activity_people (project_id, seq, part, salt)
  select project_id, seq, 'actor', decode(repeat('00', 16), 'hex') from control.project_activity;
  insert into control.denials (minute, actor_id, operation, error, count, last_request_id)
  select now() - n * interval '1 minute', n % 2000, 'projects.edit', 'not_found', 1, 'r' from generate_series(1, ${count}) as n;
  insert into control.lookups (actor_id, operation, question, project_ids, request_id)
  select n % 2000, 'trace.find', 'q', '{}', 'r' from generate_series(1, ${count}) as n;
  reset session_replication_role`)
/** For one project among many, and for a project that has half of all mail, with some mail in every partition. */
const [small, large] = [7, 8]
await database.query(`
  insert into mail.messages (id, project_id, identity_id, from_address, tags, recipient_count, size_bytes)
  select postern.uuid7(date_trunc('day', postern.now()) + (abs(hashtext(n::text)) % 16 - 1) * interval '1 day' + n * interval '1 second'), case when n % 2 = 0 then ${large} else n % 20 end, 1,
         'news@example.com', array['t' || n % 50], 1, 1 from generate_series(1, ${count * 2}) as n;
  insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
  select id, 0, project_id, 'to', 'person' || size_bytes + hashtext(id::text) % 1000 || '@example.net',
         (array['delivered', 'bounced', 'sent'])[1 + abs(hashtext(id::text)) % 3] from mail.messages;
  insert into control.queue_restrictions (project_id, kind) select id, 'hold' from control.projects where id % 10 = 0;
  insert into control.interventions (project_id, kind, source, reason, ended_at, ended_by)
  select 1 + n % 1000, 'warn', 'administrator', 'r', case when n % 4 > 0 then postern.now() end, case when n % 4 > 0 then 'expiry' end
    from generate_series(1, ${count}) as n;
  insert into control.appeals (intervention_id, project_id, user_id, text)
  select id, project_id, (select min(id) from control.users), 't' from control.interventions;
  insert into control.discards (project_id, accepted_before, matched, reason, finished_at)
  select 1 + n % 1000, postern.now(), 1, 'r', postern.now() from generate_series(1, ${count}) as n;
  insert into control.notes (project_id, text, author_id)
  select 1 + n % 1000, 'text', (select min(id) from control.users) from generate_series(1, ${count}) as n;
  insert into control.platform_suppressions (address, reason)
  select 'person' || n || '@example.net', 'r' from generate_series(1, ${count}) as n;
  insert into control.bulk_actions (id, operation, body, reason, started_by, request_id, matched, finished_at)
  select postern.uuid7(postern.now()), 'queue.hold', '{}', 'r', 1, 'r', 1, postern.now() from generate_series(1, 1000);
  insert into control.bulk_items (bulk_id, project_id, state, error, message)
  select bulk.id, n, case n % 3 when 0 then 'pending' else 'refused' end, case when n % 3 > 0 then 'not_found' end,
         case when n % 3 > 0 then 'm' end
    from (select id from control.bulk_actions limit 10) as bulk, generate_series(1, 2000) as n;
  insert into control.evidence (project_id, requested_by, range_from, range_to, message_ids, section)
  select 1 + n % 1000, 1, postern.now(), postern.now(), '{}', 'done' from generate_series(1, ${count}) as n;
  insert into control.firings (policy_id, policy_version, project_id, at, value, counted, baseline, outcome)
  select 1 + n % 6, 1, 1 + n % 1000, postern.now() - n * interval '5 minutes', 1, 1, 1, 'recorded'
    from generate_series(1, ${count}) as n;
  insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, queue_id, outcome)
  select id, 0, 1, project_id, 'service', '4X' || id, 'sent' from mail.messages;
  insert into control.identities (project_id, domain_id, name, provider, retiring_at)
  select 1 + n % 1000, null, 'mail' || n % 5000 || '.example.com', 'service', postern.now()
    from generate_series(1, ${count}) as n;
  insert into mail.events (id, project_id, type, message_id, data)
  select postern.uuid7(to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint / 1000.0)), project_id,
         'message.accepted', id, '{}' from mail.messages, generate_series(1, 3);
  insert into mail.suppressions (project_id, address, reason)
  select n % 200, 'person' || n || '@example.net', 'bounce' from generate_series(1, ${count}) as n;
  insert into mail.daily_counters (project_id, day, sent)
  select id, current_date - ago, 1 from generate_series(1, 1000) as id, generate_series(0, 60) as ago;
  insert into mail.sending_counters (project_id, bucket_at, sent)
  select id, date_bin('5 minutes', postern.now(), 'epoch') - ago * interval '1 hour', 1
    from generate_series(1, 1000) as id, generate_series(0, 22) as ago`)
await database.query('vacuum analyze')

const smallTables = ['plans']
/**
 * Filters that are allowed after an index scan. Projects over the domain limit are filtered by the member limit,
 * among a bounded number of rows. The others are applied to rows read by key: an endpoint's statistics by project, a
 * message's recipients by status, a message's events by project, and a project's restriction by kind.
 */
const harmless = new RegExp(
  [
    /^\(+(?:listing\w*\.)?member_count <= /,
    /^\(+project_id = '7'::bigint\) AND \(project_id = endpoints/,
    /^\(status = '\w+'::text\)$/,
    /^\(kind = 'hold'::text\)$/,
    /^\(\(id >= '[0-9a-f-]{36}'::uuid\) AND \(project_id = '\d'::bigint\)\)$/,
  ]
    .map(({ source }) => source)
    .join('|'),
)

async function assertOnIndex(what: object, work: (tx: ReadTx) => Promise<unknown>): Promise<void> {
  const plans = await plansOf(work)
  assert.ok(plans.length > 0)
  for (const { scanned, filtered, text } of plans) {
    const isLarge = (table: string) => !smallTables.includes(table)
    const wrong = [
      ...scanned.filter(isLarge).map((table) => `${table} is read by a sequential scan`),
      ...filtered
        .filter(({ table, condition }) => isLarge(table) && !harmless.test(condition))
        .map(({ table, condition }) => `${table} is read and filtered by ${condition}`),
    ]
    assert.deepEqual(wrong, [], `${JSON.stringify(what)}\n${text}`)
  }
}

function combinations<T extends object>(choices: { [K in keyof T]: T[K][] }): T[] {
  let all: object[] = [{}]
  for (const [name, values] of Object.entries<unknown[]>(choices)) {
    all = all.flatMap((chosen) => values.map((value) => ({ ...chosen, [name]: value })))
  }
  return all as T[]
}

const firstMessages = (projectId: number) =>
  openDatabase(database)
    .as('admin')
    .read((tx) => listMessages(tx, projectId, { limit: 1 }))

const parts = [undefined, 'project', 'abc1', 'nowhere', 'q']
const limit = 50

describe('no list reads a whole table', () => {
  const sorts: ProjectSort[] = ['-id', 'id', 'name', '-name', 'reputation_score', '-reputation_score']
  for (const sort of sorts) {
    test(`projects by ${sort}, with each combination of filters`, async () => {
      for (const filter of combinations<{
        q: string | undefined
        locked: boolean | undefined
        planId: number | undefined
        scores: { minScore?: number; maxScore?: number }
        overLimit: boolean | undefined
      }>({
        q: parts,
        locked: [undefined, true, false],
        planId: [undefined, 1, 20],
        scores: [{}, { maxScore: 10 }],
        overLimit: [undefined, true, false],
      })) {
        const { scores, ...rest } = filter
        const key = { id: null, name: 'project 5', reputation_score: 90 }[sort.replace('-', '')] ?? null
        const after = filter.locked === false ? { key, id: 9000 } : undefined
        const search = { ...rest, ...scores, sort, limit, after }
        await assertOnIndex(search, (tx) => searchProjects(tx, search))
      }
    })
  }

  test('users, with each combination of filters', async () => {
    for (const filter of combinations<{
      q: string | undefined
      role: string | undefined
      isActive: boolean | undefined
    }>({
      q: parts,
      role: [undefined, 'user', 'admin'],
      isActive: [undefined, true, false],
    })) {
      for (const beforeId of [undefined, 9000]) {
        const search = { ...filter, limit, beforeId }
        await assertOnIndex(search, (tx) => searchUsers(tx, search))
      }
    }
  })

  test('the audit log, with each combination of filters', async () => {
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000)
    for (const filter of combinations<{
      projectId: number | undefined
      actor: number | undefined
      operation: string | undefined
      resource: [string, string?] | undefined
      from: Date | undefined
      to: Date | undefined
    }>({
      projectId: [undefined, 0, 7],
      actor: [undefined, 3],
      operation: [undefined, 'projects.edit', 'plans.edit'],
      resource: [undefined, ['endpoint'], ['project', '7']],
      from: [undefined, hoursAgo(20)],
      to: [undefined, hoursAgo(10)],
    })) {
      const search = { ...filter, limit }
      await assertOnIndex(search, (tx) => searchAudit(tx, search))
    }
  })

  test("a user's projects, a project's members, endpoints, interventions, discards and evidence, firings and denials", async () => {
    for (const beforeId of [Number.MAX_SAFE_INTEGER, 9000]) {
      const page = { limit, beforeId }
      await assertOnIndex({ own: page }, (tx) => listProjectsOf(tx, 7, page))
      await assertOnIndex({ members: page }, (tx) => listMembers(tx, 7, page))
      await assertOnIndex({ endpoints: page }, (tx) => listEndpoints(tx, 7, page))
      for (const inForce of [false, true]) {
        await assertOnIndex({ inForce, page }, (tx) => listInterventions(tx, 7, { ...page, inForce }))
        await assertOnIndex({ notices: inForce, page }, (tx) => listNotices(tx, 7, { ...page, inForce }))
      }
      await assertOnIndex({ discards: page }, (tx) => listDiscards(tx, 7, page))
      await assertOnIndex({ evidence: page }, (tx) => listEvidence(tx, 7, page))
      for (const filter of combinations<{ policyId: number | undefined; projectId: number | undefined }>({
        policyId: [undefined, 2],
        projectId: [undefined, 7],
      })) {
        await assertOnIndex({ firings: filter, page }, (tx) => listFirings(tx, { ...filter, ...page }))
      }
      const [{ id: bulkId } = assert.fail()] = await database.query<{ id: string }>(
        'select bulk_id as id from control.bulk_items limit 1',
      )
      for (const before of [undefined, bulkId])
        await assertOnIndex({ bulk: before }, (tx) => listBulkActions(tx, { limit, before }))
      await assertOnIndex({ pending: page }, (tx) => listPending(tx, bulkId, { after: 7, limit }))
      await assertOnIndex({ bulk: bulkId }, async (tx) => bulkDetail(tx, await findBulk(tx, bulkId)))
      await assertOnIndex({ activity: page }, (tx) => activityPage(tx, 'project', 7, { limit }))
      await assertOnIndex({ activity: page }, (tx) =>
        activitySearch(tx, 'project', 7, { limit, userId: 7, from: new Date(0), to: new Date() }),
      )
      await assertOnIndex({ notes: page }, (tx) => listNotes(tx, 7, page))
      await assertOnIndex({ denials: page }, (tx) => listDenials(tx, page))
      await assertOnIndex({ denials: page }, (tx) => listDenials(tx, { ...page, actorId: 7 }))
      await assertOnIndex({ lookups: page }, (tx) => listLookups(tx, page))
      await assertOnIndex({ lookups: page }, (tx) => listLookups(tx, { ...page, actorId: 7 }))
    }
  })

  for (const projectId of [small, large]) {
    test(`the messages of project ${projectId}, with each combination of filters, and their recipients and events`, async () => {
      const { data } = await firstMessages(projectId)
      const [message = assert.fail()] = data
      const [{ address } = assert.fail()] = message.recipients
      for (const filter of combinations<Required<Omit<MessageFilter, 'from' | 'to'>>>({
        recipient: [undefined, address, 'nobody@example.net'],
        status: [undefined, 'bounced', 'complained'],
        tag: [undefined, 't7', 'none'],
      })) {
        for (const id of [undefined, message.id]) {
          const cursor = id && Buffer.from(`after:${id}`).toString('base64url')
          const query = { ...filter, limit, ...(cursor === undefined ? {} : { cursor }) }
          await assertOnIndex({ projectId, ...query }, (tx) => listMessages(tx, projectId, query))
        }
      }
      for (const recipient of [undefined, address]) {
        const query = { recipient, from: '2026-01-01T00:00:00Z', to: '2126-01-01T00:00:00Z', limit }
        await assertOnIndex({ projectId, ...query }, (tx) => listMessages(tx, projectId, query))
      }
      await assertOnIndex({ events: message.id }, (tx) => listMessageEvents(tx, projectId, message.id))
      for (const after of [undefined, 'person5@example.net']) {
        await assertOnIndex({ platform: after }, (tx) => listPlatformSuppressions(tx, { limit, after }))
        await assertOnIndex({ suppressions: after }, (tx) =>
          listSuppressions(tx, projectId, { limit, after }),
        )
      }
    })
  }

  test('the messages of all projects, with each combination of filters', async () => {
    const { data } = await firstMessages(small)
    const [message = assert.fail()] = data
    const [{ address } = assert.fail()] = message.recipients
    await assertOnIndex({ senders: true }, (tx) => findSenders(tx, 'mail7.example.com'))
    const senders = [small, large].map((project_id) => ({ project_id, identity_ids: [1, 2] }))
    const hour = 3_600_000
    for (const filter of combinations<{
      recipient: string | undefined
      senderAddress: string | undefined
      status: 'bounced' | 'held' | undefined
      from: Date | undefined
      beforeId: string | undefined
    }>({
      recipient: [undefined, address, 'nobody@example.net'],
      senderAddress: [undefined, 'news@example.com'],
      status: [undefined, 'bounced', 'held'],
      from: [undefined, new Date(Date.now() - hour)],
      beforeId: [undefined, message.id],
    })) {
      const { recipient } = filter
      await assertOnIndex(filter, (tx) => scanCell(tx, filter, senders, limit))
      if (recipient !== undefined) await assertOnIndex(filter, (tx) => scanCell(tx, filter, undefined, limit))
    }
  })

  test('the volumes of projects', async () => {
    for (const range of volumeRanges) {
      for (const ids of [[7], Array.from({ length: 200 }, (_none, index) => 5 * index)])
        await assertOnIndex({ range, ids }, (tx) => sumIn(tx, ids, range))
    }
  })

  test('the lookups of a trace', async () => {
    const { data } = await firstMessages(small)
    const [{ id: messageId, recipients } = assert.fail()] = data
    const wanted = {
      signed: [{ shard: 1, messageId, recipientNo: 0 }],
      messages: [{ id: messageId, recipientNo: null }],
      queueIds: [`4X${messageId}`, 'none'],
    }
    await assertOnIndex({ trace: messageId }, (tx) => findNamed(tx, { shards: undefined }, wanted))
    const period = { from: new Date(0), to: new Date('3000-01-01') }
    const address = recipients[0]?.address ?? assert.fail()
    await assertOnIndex({ address }, (tx) => findAddressed(tx, [{ address, ...period }]))
  })

  test("each of a project's large collections can be read in order of id", async () => {
    for (const table of [
      'members',
      'domains',
      'endpoints',
      'routes',
      'api_keys',
      'interventions',
      'discards',
      'notes',
      'evidence',
    ]) {
      const [index] = await database.query(
        `select from pg_index where indrelid = $1::regclass and indpred is null
            and (select array_agg(attname::text order by place)
                   from unnest(indkey[0:1]::int2[]) with ordinality as keys (attnum, place)
                   join pg_attribute on attrelid = indrelid and pg_attribute.attnum = keys.attnum) = '{project_id,id}'`,
        [`control.${table}`],
      )
      assert.ok(index, `control.${table} has no index that begins with (project_id, id)`)
    }
  })
})
