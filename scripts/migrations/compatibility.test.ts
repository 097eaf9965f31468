import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { testDatabase } from '../../server/src/testing/harness/database.ts'
import { type Compatibility, checkCompatibility } from './compatibility.ts'
import { contractFaults, releasesIn } from './contract.ts'

const database = await testDatabase()
const client = new pg.Client({ connectionString: database.superuserUrl })
await client.connect()
cleanUp(() => client.end())

/** Applies a file as the next migration, and rolls it back. */
async function check(sql: string): Promise<Compatibility> {
  await client.query('begin')
  try {
    await client.query('set local role postern_owner; set local search_path = pg_catalog')
    return await checkCompatibility(client, sql)
  } finally {
    await client.query('rollback')
  }
}

const refused: [what: string, sql: string, finding: RegExp][] = [
  ['drops a table', 'drop table control.reversals', /relation is gone: control\.reversals/],
  ['renames a table', 'alter table mail.usage rename to used', /relation is gone: mail\.usage/],
  [
    'drops a column',
    'alter table control.plans drop column description',
    /column is gone: control\.plans\.desc/,
  ],
  [
    'renames a column',
    'alter table control.plans rename price to cost',
    /column is gone: control\.plans\.price/,
  ],
  [
    'changes the type of a column',
    'alter table control.plans alter column max_mails_per_day type numeric',
    /another type: control\.plans\.max_mails_per_day \(\w+ → numeric\)/,
  ],
  [
    'adds a required column without a default',
    'alter table control.plans add column colour text not null',
    /new required column without a default: control\.plans\.colour/,
  ],
  [
    'makes a column required',
    'alter table control.projects alter column billing_product_id set not null',
    /column is required now: control\.projects\.billing_product_id/,
  ],
  [
    'drops a default',
    'alter table control.endpoint_stats alter column counted_at drop default',
    /no longer has a default: control\.endpoint_stats\.counted_at/,
  ],
  [
    'adds a unique index to an existing table',
    'create unique index on control.plans (name)',
    /must be unique now: CREATE UNIQUE on control\.plans/,
  ],
  [
    'adds a validated check constraint',
    `alter table control.plans add check (name <> 'x')`,
    /validated constraint: control\.plans: CHECK/,
  ],
  [
    'adds a validated foreign key',
    'alter table mail.daily_counters add foreign key (project_id) references control.projects',
    /validated constraint: mail\.daily_counters: FOREIGN KEY/,
  ],
  [
    'drops a function',
    'drop function mail.maintain_partitions',
    /function is gone: mail\.maintain_partitions\(integer,integer\)/,
  ],
  [
    'revokes a privilege',
    'revoke insert on control.plans from postern_admin',
    /revoked: INSERT on control\.plans to postern_admin/,
  ],
  [
    'adds a restrictive policy',
    `create policy fewer on control.plans as restrictive using (id > 5)`,
    /row-level security: control\.plans: fewer/,
  ],
  [
    'creates an index on a large table',
    'create index on mail.dispatch (attempt)',
    /mail\.dispatch is scanned completely/,
  ],
  [
    'creates an index on a large partitioned table',
    'create index on mail.events (type)',
    /mail\.events is scanned completely/,
  ],
  [
    'rewrites a large table',
    'alter table mail.suppressions add column number uuid not null default gen_random_uuid()',
    /mail\.suppressions is rewritten/,
  ],
  [
    'locks a large table during a long statement',
    'alter table mail.messages add column colour text; update control.projects set name = name',
    /mail\.messages is locked while another table is scanned/,
  ],
  [
    'drops a column inside a DO block',
    `do $$ begin execute format('alter table %s drop column %I', 'control.plans', 'price'); end $$`,
    /column is gone: control\.plans\.price/,
  ],
]

describe('a migration is rejected if it', () => {
  for (const [what, sql, finding] of refused)
    test(what, async () => {
      const { contracts, blocks } = await check(sql)
      assert.match([...contracts, ...blocks].join('\n'), finding)
    })
})

describe('a migration is accepted if it', () => {
  const allowed: [what: string, sql: string][] = [
    [
      'creates a table with constraints, grants and indexes',
      `create table control.colours (id bigint primary key, project_id bigint not null references control.projects,
         name text not null unique check (name <> ''));
       grant select on control.colours to postern_admin; create index on control.colours (name)`,
    ],
    ['adds a nullable column', 'alter table mail.messages add column colour text'],
    [
      'adds a column with a default',
      `alter table control.projects add column colour text not null default 'red',
         add check (colour <> '') not valid`,
    ],
    ['creates an index on a small table', 'create index on control.domains (created_at)'],
    ['creates an index for future partitions', 'create index on only mail.events (type)'],
    [
      'adds a constraint that is not validated',
      `alter table mail.daily_counters add constraint sane check (sent >= 0) not valid`,
    ],
    ['relaxes a constraint', 'alter table control.plans alter column description drop not null'],
    ['grants a privilege', 'grant update on control.audit_heads to postern_readonly'],
    ['drops an index', 'drop index control.domains_by_name'],
  ]
  for (const [what, sql] of allowed)
    test(what, async () => {
      assert.deepEqual(await check(sql), { contracts: [], blocks: [] })
    })

  test('validates a constraint that an earlier file added', async () => {
    await database.query('alter table mail.daily_counters add constraint sane check (sent >= 0) not valid')
    assert.deepEqual(await check('alter table mail.daily_counters validate constraint sane'), {
      contracts: [],
      blocks: [],
    })
  })
})

describe('a contract', () => {
  const drop = '-- Colours are gone.\n-- contract: since 0.3.0 nothing uses control.projects.colour\nalter …'

  test('is marked by a comment at the head of the file', () => {
    assert.equal(contractFaults('alter table …', ['0.3.0']), undefined)
    assert.equal(contractFaults(`alter …;\n${drop}`, ['0.3.0']), undefined)
    assert.deepEqual(contractFaults(drop, ['0.2.0', '0.3.0']), [])
  })

  test('requires that a version that no longer uses the removed object has been released', () => {
    assert.match(contractFaults(drop, ['0.2.0'])?.join() ?? '', /since 0\.3\.0, which is not released/)
  })

  test('reads the releases from the changelog', () => {
    assert.deepEqual(
      releasesIn('# Log\n\n## Unreleased\n\n## [0.3.0] - 2027-01-02\n### Added 0.9.9\n## 0.2.0\n'),
      ['0.3.0', '0.2.0'],
    )
  })
})
