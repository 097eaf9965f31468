import type pg from 'pg'

/**
 * An installation that has been used for some years, created by SQL: projects that differ in size, plan and behaviour,
 * and an audit log in which a few administrators made most of the changes. The rows are the same as those the API
 * writes, except for the audit hashes, which do not form a chain. Triggers are disabled during the inserts, and the
 * data that they maintain is computed at the end.
 */
export interface Sizes {
  projects: number
  audit: number
}

type Say = (text: string) => void

/** Fills the database unless an earlier run has already done so. */
export async function fillOnce(client: pg.Client, sizes: Sizes, say: Say): Promise<void> {
  const { rows } = await client.query<{ projects: string; audit: string }>(
    'select (select count(*) from control.projects) as projects, (select count(*) from control.audit) as audit',
  )
  if (Number(rows[0]?.projects) >= sizes.projects && Number(rows[0]?.audit) >= sizes.audit) return
  say('Filling the database:')
  // Removes the row written by `postern admin create`.
  await client.query(`set session_replication_role = replica; delete from control.audit;
    delete from control.audit_people; delete from control.audit_heads; reset session_replication_role`)
  await fill(client, sizes, say)
}

async function fill(client: pg.Client, sizes: Sizes, say: Say): Promise<void> {
  const step = async (what: string, statement: string): Promise<void> => {
    const startedAt = performance.now()
    await client.query(statement)
    say(`  ${what}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  }
  await client.query(`set session_replication_role = replica; set synchronous_commit = off;
                      set maintenance_work_mem = '512MB'; select setseed(0.5)`)
  await client.query(`alter system set max_wal_size = '8GB'`)
  await client.query('select pg_reload_conf()')
  await withoutIndexes(client, projectTables, say, async () => {
    for (const [what, statement] of Object.entries(projectStatements(sizes.projects)))
      await step(what, statement)
  })
  await withoutIndexes(client, ['control.audit', 'control.audit_people'], say, async () => {
    for (let first = 1; first <= sizes.audit; first += auditAtOnce) {
      const last = Math.min(first + auditAtOnce - 1, sizes.audit)
      await step(`audit rows ${first} to ${last}`, auditRows(first, last, sizes))
    }
    await step('personal data of the audit', auditPeople)
  })
  await client.query(`select setval('control.audit_id_seq', (select max(id) from control.audit))`)
  for (const table of ['users', 'plans', 'projects', 'members', 'domains', 'routes']) {
    await client.query(`select setval('control.${table}_id_seq', (select max(id) from control.${table}))`)
  }
  // The chain to which `postern` commands append.
  await client.query(`insert into control.audit_heads (chain, seq, hash)
    select 0, max(seq), decode(repeat('00', 32), 'hex') from control.audit where chain = 0`)
  await client.query('reset session_replication_role')
  await step('vacuum analyze', 'vacuum analyze')
  await client.query('checkpoint')
}

const projectTables = [
  'control.users',
  'control.projects',
  'control.project_stats',
  'control.members',
  'control.domains',
  'control.routes',
  'control.project_listing',
]

/** Creating an index at the end takes a tenth of the time that maintaining it row by row would take. */
async function withoutIndexes(
  client: pg.Client,
  tables: string[],
  say: Say,
  work: () => Promise<void>,
): Promise<void> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
       from pg_index where indrelid = any($1::regclass[]) and not indisprimary
        and not exists (select from pg_constraint where conindid = indexrelid)`,
    [tables],
  )
  for (const { name } of rows) await client.query(`drop index ${name}`)
  await work()
  const startedAt = performance.now()
  for (const { definition } of rows) {
    await client.query(definition)
  }
  say(`  ${rows.length} indexes: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
}

/** A deterministic value from 0 to 1 for each number and purpose. */
const chance = (of: string, purpose: number): string =>
  `((hashint8extended(${of}, ${purpose}) & 1048575)::float8 / 1048576)`

const pick = (words: string[], of: string, purpose: number): string =>
  `(array[${words.map((word) => `'${word}'`).join(', ')}])[1 + floor(${chance(of, purpose)} * ${words.length})]`

const first =
  'Acme Globex Initech Umbrella Stark Wayne Hooli Vandelay Contoso Northwind Zürich Blue Green'.split(' ')
const second = 'Shop Labs Media Foods Travel Games News Bank Health School Cloud Data Works'.split(' ')

const plans = 20
/** No longer available: only the oldest projects have this plan. */
export const legacyPlan = plans
/** The plan of six in ten projects, with low limits. */
export const freePlan = 1

const projectStatements = (count: number): Record<string, string> => ({
  users: `
    insert into control.users (id, email, name, role, is_active, created_at) overriding system value
    select 1000 + n, 'person' || n || '@' || lower(${pick(first, 'n', 1)}) || '.example',
           ${pick('Ada Grace Alan Edsger Barbara Donald Radia Vint'.split(' '), 'n', 2)} || ' ' || substr(md5(n::text), 1, 8),
           case when n % 20000 = 0 then 'admin' else 'user' end, ${chance('n', 3)} > 0.01,
           now() - (${count} - n) * interval '60 seconds'
      from generate_series(1, ${count}) as n`,
  plans: `
    insert into control.plans (id, name, description, support_level, max_domains, max_users, max_mails_per_day,
                               max_mails_per_month, price, is_active) overriding system value
    select n, 'Plan ' || n, 'For measuring', 'email', 2 * n, 1 + 2 * n, 1000 * n, 20000 * n, 9.90 * n, n <> ${legacyPlan}
      from generate_series(1, ${plans}) as n`,
  projects: `
    insert into control.projects (id, user_id, name, is_locked, allow_service_mta, plan_id, admin_plan_id, version,
                                  created_at, updated_at) overriding system value
    select n, 1000 + n,
           -- The oldest tenth was imported and has a common word in the name; one name in a thousand has a rare word.
           case when n <= ${count} / 10 then 'Imported ' else '' end || ${pick(first, 'n', 4)} || ' '
             || ${pick(second, 'n', 5)} || case when n % 1000 = 7 then ' Quixotic' else ' Project' end
             || ' ' || substr(md5(n::text), 1, 6),
           ${chance('n', 6)} < 0.01, false,
           case when n <= ${count} / 33 then ${legacyPlan} when ${chance('n', 7)} < 0.6 then ${freePlan}
                else 2 + floor(${chance('n', 8)} ^ 2 * ${plans - 2}) end,
           case when ${chance('n', 9)} < 0.02 then 5 + floor(${chance('n', 10)} * 3) end, 1 + n % 5,
           now() - (${count} - n) * interval '60 seconds', now() - (${count} - n) * interval '50 seconds'
      from generate_series(1, ${count}) as n`,
  stats: `
    insert into control.project_stats (project_id, computed_score, bounced, failed, complained)
    select id, case when is_locked then floor(40 * ${chance('id', 11)}) else 100 - floor(95 * ${chance('id', 11)} ^ 4) end,
           floor(1000 * ${chance('id', 12)} ^ 4), floor(100 * ${chance('id', 13)} ^ 4), floor(50 * ${chance('id', 14)} ^ 6)
      from control.projects`,
  // Most projects have no members other than their owner. If invited members are counted, one in a few hundred projects
  // exceeds its plan's limit.
  members: `
    insert into control.members (project_id, user_id, email, name, role, joined_at)
    select id, case when n = 1 then user_id end, 'member' || n || '.' || id || '@example.org', 'Member',
           case n when 1 then 'owner' else 'developer' end, case when n = 1 then now() end
      from control.projects, generate_series(1, 1 + floor(4.5 * ${chance('id', 15)} ^ 20)::int) as n`,
  domains: `
    insert into control.domains (project_id, name, mta_provider, ownership_token)
    select id, 'mail' || n || '-' || id || '.example', 'ses', 'token'
      from control.projects, generate_series(1, floor(1 + 3.2 * ${chance('id', 16)} ^ 12)::int) as n`,
  routes: `
    insert into control.routes (project_id, domain_id, match, address, action)
    select project_id, id, 'address', ${pick('support info hello sales noreply'.split(' '), 'id', 17)} || '@' || name, 'drop'
      from control.domains`,
  listing: `
    insert into control.project_listing (project_id, folded_name, is_locked, plan_id, reputation_score, member_count,
                                         domain_count)
    select id, lower(name), is_locked, coalesce(admin_plan_id, plan_id), reputation_score, members.count, domains.count
      from control.projects join control.project_stats on project_id = id
      join (select project_id, count(*) from control.members group by 1) as members on members.project_id = id
      join (select project_id, count(*) from control.domains group by 1) as domains on domains.project_id = id`,
})

const auditAtOnce = 1_000_000

/** Operations, each with its resource type and its share of all rows in parts per thousand. */
export const operations: [operation: string, type: string, share: number][] = [
  ['projects.edit', 'project', 300],
  ['members.create', 'member', 150],
  ['endpoints.create', 'endpoint', 120],
  ['endpoints.edit', 'endpoint', 100],
  ['domains.create', 'domain', 90],
  ['projects.create', 'project', 80],
  ['members.delete', 'member', 40],
  ['api-keys.create', 'api_key', 40],
  ['endpoints.rotate', 'endpoint', 30],
  ['routing.create', 'route', 20],
  ['routing.edit', 'route', 10],
  ['plans.edit', 'plan', 10],
  ['users.edit', 'user', 9],
  ['projects.set-billing', 'project', 1],
]

/** This project has 1% of all rows, and chain 0 has the rows without a project. The rest are spread evenly. */
export const busyProject = 5
/** Ordered by number of changes: the first made two thirds of them. */
export const actors = [2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007]

function auditRows(from: number, to: number, { projects, audit }: Sizes): string {
  let upTo = 0
  const cases = (value: (entry: (typeof operations)[number]) => string): string => {
    upTo = 0
    const branches = operations.map((entry) => {
      upTo += entry[2]
      return `when dice < ${upTo} then ${value(entry)}`
    })
    return `case ${branches.join(' ')} end`
  }
  const zeroes = `decode(repeat('00', 32), 'hex')`
  return `
    insert into control.audit (chain, seq, id, at, actor_kind, actor_id, actor_digest, request_id, operation,
                               project_id, resource_type, resource_id, reason, before, after, xid, prev_hash, hash)
    select coalesce(project, 0), n, n, now() - (${audit} - n) * interval '3 seconds', 'person', actor, ${zeroes},
           '0198f2a4-0000-7000-8000-' || lpad(n::text, 12, '0'), operation, project, type, resource::text,
           case when dice % 3 = 0 then 'Asked for by the customer, ticket ' || n end,
           jsonb_build_object('name', 'Before ' || n, 'is_locked', false),
           jsonb_build_object('name', 'After ' || n, 'is_locked', false), pg_current_xact_id(), ${zeroes}, ${zeroes}
      from (
        select n, dice, ${cases(([operation]) => `'${operation}'`)} as operation,
               ${cases(([, type]) => `'${type}'`)} as type,
               case when dice >= 980 and dice < 999 then null when ${chance('n', 21)} < 0.01 then ${busyProject}
                    else 1 + floor(${chance('n', 22)} * ${projects})::bigint end as project,
               1 + floor(${chance('n', 23)} * ${projects})::bigint as resource,
               (array[${actors.join(', ')}])[1 + floor(${chance('n', 24)} ^ 5 * ${actors.length})::int] as actor
          from generate_series(${from}, ${to}) as n, lateral (select floor(${chance('n', 25)} * 1000)::int as dice) as thrown
      ) as rows`
}

const auditPeople = `
  insert into control.audit_people (audit_id, part, project_id, salt, email, ip, user_agent)
  select id, 'actor', project_id, decode(repeat('00', 16), 'hex'), 'admin' || actor_id || '@example.com', '192.0.2.1',
         'Mozilla/5.0 (X11; Linux x86_64)' from control.audit`
