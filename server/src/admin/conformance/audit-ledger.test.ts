import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { verifyingKeysOf } from '../../core/control/audit/keys.ts'
import { verifyAudit } from '../../core/control/audit/verify.ts'
import { fixtures, planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { Chance, seed } from '../../testing/harness/random.ts'

/**
 * The number of audit rows equals the number of committed changes, regardless of failures: random operations by many
 * concurrent callers, while statements fail, commits fail, connections are cut and callers disconnect. Committed
 * changes are counted by the resources' versions, because only a change increases a version. Queues have no version
 * and are counted by whether they are held; messages are counted by their jobs.
 */
const mutations = Number(process.env['POSTERN_TEST_MUTATIONS'] ?? 600)
const callers = 12

const database = await testDatabase()
const api = await startApi(database, { POSTERN_DATABASE_POOL_SIZE: '8' })
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject } = fixtures(database, admin)
const { makeMail } = mailRows(database)

interface Place {
  project: number
  members: number[]
  endpoints: number[]
  /** Messages that are scheduled for a time after the test. */
  messages: string[]
}

const places: Place[] = []
const plans: number[] = []
const tally = { done: 0, refused: 0, failed: 0, unheard: 0 }

describe('the audit log compared with the committed changes', () => {
  test(`has exactly one row for each committed change of ${mutations} random mutations (seed ${seed})`, async (t) => {
    const chance = new Chance(seed)
    const user = await makeUser()
    for (let n = 0; n < 4; n++) plans.push((await makePlan()).id)
    for (let n = 0; n < 16; n++) {
      const { id } = await makeProject({ user_id: user.id, plan_id: chance.pick(plans) })
      const messages = [await makeMail(id, { sendIn: '20 days' }), await makeMail(id, { sendIn: '20 days' })]
      places.push({
        project: id,
        members: [],
        endpoints: [],
        messages: messages.map(({ messageId }) => messageId),
      })
    }
    const before = await count('select count(*) from control.audit')
    await sabotage()
    const trouble = new AbortController()
    const cutting = cutConnections(trouble.signal)

    let left = mutations
    await Promise.all(
      Array.from({ length: callers }, async () => {
        while (left-- > 0) await act(chance)
      }),
    )
    trouble.abort()
    await cutting
    await repair()
    t.diagnostic(JSON.stringify(tally))

    assert.deepEqual(await mismatches(), [])
    assert.deepEqual(await queueMismatches(), [])
    assert.deepEqual(await jobMismatches(), [])
    const rows = (await count('select count(*) from control.audit')) - before
    // A lower bound, because an edit may find nothing to change.
    assert.ok(rows > tally.done / 2, `${tally.done} requests succeeded, ${rows} rows were written`)
    assert.ok(
      rows <= tally.done + tally.failed + tally.unheard,
      'more rows than mutations that may have been committed',
    )
    assert.ok(tally.failed > mutations / 200 && tally.unheard > 0, 'too few failures to prove anything')
    const keys = verifyingKeysOf(api.context.config.masterKeys)
    const { ok, first_bad } = await verifyAudit(api.context.db.admin, { keys })
    assert.ok(ok, JSON.stringify(first_bad))
  })
})

type Act = [method: string, path: string, body: object]

const reason = 'by chance'

function nextAct(chance: Chance): { act: Act; place: Place } {
  const place = chance.pick(places)
  const base = `/projects/${place.project}`
  const name = `Name ${chance.below(20)}`
  const endpoint = {
    name,
    url: `https://h${chance.below(5)}.example.com/x`,
    events: ['message.sent'],
    is_active: chance.happens(0.5),
  }
  const acts: Act[] = [
    ['PATCH', base, { name }],
    ['PATCH', base, { is_locked: chance.happens(0.5), ...(chance.happens(0.8) ? { reason } : {}) }],
    [
      'PATCH',
      base,
      { reputation_score: chance.below(101), admin_plan_id: chance.pick([null, ...plans]), reason },
    ],
    [
      'PUT',
      `${base}/billing`,
      { billing_subscription_id: name, billing_subscription_status: 'active', billing_product_id: null },
    ],
    ['POST', `${base}/members`, { email: `p${chance.below(1_000_000)}@example.org`, role: 'viewer' }],
    ['POST', `${base}/endpoints`, endpoint],
    ['POST', `${base}/queue/${chance.pick(['hold', 'release'])}`, { reason }],
    ['POST', `${base}/messages/${chance.pick(place.messages)}/cancel`, { reason }],
    ['PATCH', `/plans/${chance.pick(plans)}`, { ...planConfiguration, price: chance.below(5) }],
  ]
  const [member, hook] = [place.members[chance.below(8)], place.endpoints[chance.below(8)]]
  if (member !== undefined) {
    acts.push(['PATCH', `${base}/members/${member}`, { role: chance.pick(['admin', 'developer', 'viewer']) }])
    acts.push(['DELETE', `${base}/members/${member}`, { reason }])
  }
  if (hook !== undefined) {
    acts.push(['PATCH', `${base}/endpoints/${hook}`, endpoint])
    acts.push(['POST', `${base}/endpoints/${hook}/rotate`, { reason }])
    acts.push(['DELETE', `${base}/endpoints/${hook}`, { reason }])
  }
  return { act: chance.pick(acts), place }
}

async function act(chance: Chance): Promise<void> {
  const {
    act: [method, path, body],
    place,
  } = nextAct(chance)
  const dryRun = chance.happens(0.05) ? '?dry_run=true' : ''
  const hangUp = chance.happens(0.02) ? AbortSignal.timeout(chance.below(15)) : undefined
  let answer: Response
  try {
    answer = await fetch(`${api.url}/v1/admin${path}${dryRun}`, {
      method,
      headers: { ...admin.headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(hangUp ? { signal: hangUp } : {}),
    })
    const text = await answer.text()
    if (dryRun !== '') return
    if (answer.status >= 500) tally.failed++
    else if (answer.status >= 400) tally.refused++
    else tally.done++
    if (answer.status === 201) remember(place, path, JSON.parse(text))
    if (answer.status === 204) forget(place, path)
  } catch {
    tally.unheard++
  }
}

/** Resources that the callers do not know about remain in the database, and their rows are counted there. */
function remember(place: Place, path: string, made: { id: number; resource?: { id: number } }): void {
  if (path.endsWith('/members')) place.members.push(made.id)
  if (path.endsWith('/endpoints')) place.endpoints.push(made.resource?.id ?? 0)
}

function forget(place: Place, path: string): void {
  const id = Number(path.split('/').at(-1))
  place.members = place.members.filter((member) => member !== id)
  place.endpoints = place.endpoints.filter((endpoint) => endpoint !== id)
}

/** One statement in a hundred fails after the change was written, and one commit in a hundred. */
async function sabotage(): Promise<void> {
  await database.query(`
    create function public.fail_by_chance() returns trigger language plpgsql as $$
    begin
      if random() < 0.01 then raise exception 'sabotage'; end if;
      return null;
    end $$;
    create trigger sabotage after insert on control.audit for each row execute function public.fail_by_chance();
    create constraint trigger sabotage_commit after update on control.audit_heads
      deferrable initially deferred for each row execute function public.fail_by_chance();`)
}

async function repair(): Promise<void> {
  await database.query(`
    drop trigger sabotage on control.audit;
    drop trigger sabotage_commit on control.audit_heads;`)
}

async function cutConnections(until: AbortSignal): Promise<void> {
  while (!until.aborted) {
    await sleep(150)
    await database.query(`
      select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and usename = 'postern_app' order by random() limit 1`)
  }
}

const count = async (query: string): Promise<number> =>
  Number((await database.query<{ count: string }>(query))[0]?.count)

/**
 * An existing resource has as many rows as its version, including its creation; a deleted one also has its deletion.
 */
const mismatches = () =>
  database.query(`
    with living as (
      select 'project' as type, id, version from control.projects union all
      select 'plan', id, version from control.plans union all
      select 'member', id, version from control.members union all
      select 'endpoint', id, version from control.endpoints union all
      select 'intervention', id, version from control.interventions union all
      select 'reversal', id, version from control.reversals
    ), told as (
      select resource_type as type, resource_id::bigint as id, before, after from control.audit
       where resource_type not in ('user', 'queue', 'message') union all
      select entry ->> 'resource', (entry ->> 'id')::bigint, nullif(entry -> 'before', 'null'), nullif(entry -> 'after', 'null')
        from control.audit, jsonb_array_elements(related) as entry
    ), counted as (
      select type, id, count(*) as rows, count(*) filter (where before is null) as creations,
             count(*) filter (where after is null) as deletions
        from told group by type, id
    )
    select type, id, version, rows, creations, deletions from living full join counted using (type, id)
     where creations is distinct from 1
        or (version is not null and (rows <> version or deletions <> 0))
        or (version is null and deletions <> 1)`)

/** Holds and releases alternate, starting with a hold; the last one matches the current state of the queue. */
const queueMismatches = () =>
  database.query(`
    with acts as (
      select project_id, operation, lag(operation) over (partition by project_id order by seq) as earlier,
             lead(operation) over (partition by project_id order by seq) is null as is_last
        from control.audit where resource_type = 'queue'
    )
    select project_id, operation, earlier, is_last from acts
     where operation = coalesce(earlier, 'queue.release')
        or (is_last and (operation = 'queue.hold') <> (project_id in (select project_id from control.queue_restrictions)))
     union all
    select project_id, 'held', null, null from control.queue_restrictions
     where project_id not in (select project_id from acts)`)

const jobMismatches = () =>
  database.query(`
    select * from (select resource_id as id, count(*) as rows from control.audit
                    where resource_type = 'message' group by 1) as told
      full join (select data ->> 'message_id' as id, count(*) as jobs from jobs.job
                  where name = 'messages.cancel' group by 1) as asked using (id)
     where rows is distinct from jobs`)
