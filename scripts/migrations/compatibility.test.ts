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

/** As the next file would be applied; and undone. */
async function judged(sql: string): Promise<Compatibility> {
  await client.query('begin')
  try {
    await client.query('set local role postern_owner; set local search_path = pg_catalog')
    return await checkCompatibility(client, sql)
  } finally {
    await client.query('rollback')
  }
}

const refused: [what: string, sql: string, finding: RegExp][] = [
  [
    'a table that is dropped',
    'drop table control.endpoint_notices',
    /relation is gone: control\.endpoint_notices/,
  ],
  ['a table that is renamed', 'alter table mail.usage rename to used', /relation is gone: mail\.usage/],
  [
    'a column that is dropped',
    'alter table control.plans drop column description',
    /column is gone: control\.plans\.desc/,
  ],
  [
    'a column that is renamed',
    'alter table control.plans rename price to cost',
    /column is gone: control\.plans\.price/,
  ],
  [
    'a column of another type',
    'alter table control.plans alter column max_users type numeric',
    /another type: control\.plans\.max_users \(\w+ → numeric\)/,
  ],
  [
    'a column that must be filled, without a default',
    'alter table control.plans add column colour text not null',
    /new column that must be filled: control\.plans\.colour/,
  ],
  [
    'a column that must be filled from now on',
    'alter table control.projects alter column billing_product_id set not null',
    /column must be filled now: control\.projects\.billing_product_id/,
  ],
  [
    'a default that goes away',
    'alter table control.endpoint_stats alter column counted_at drop default',
    /no longer filled by itself: control\.endpoint_stats\.counted_at/,
  ],
  [
    'a unique index on a table that is there',
    'create unique index on control.plans (name)',
    /must be unique now: CREATE UNIQUE on control\.plans/,
  ],
  [
    'a check that is made at once',
    `alter table control.plans add check (name <> 'x')`,
    /checked at once: control\.plans: CHECK/,
  ],
  [
    'a foreign key that is checked at once',
    'alter table mail.daily_counters add foreign key (project_id) references control.projects',
    /checked at once: mail\.daily_counters: FOREIGN KEY/,
  ],
  [
    'a function that is dropped',
    'drop function mail.maintain_partitions',
    /function is gone: mail\.maintain_partitions\(integer,integer\)/,
  ],
  [
    'a right that is revoked',
    'revoke insert on control.plans from postern_admin',
    /revoked: INSERT on control\.plans to postern_admin/,
  ],
  [
    'a policy that lets less through',
    `create policy fewer on control.plans as restrictive using (id > 5)`,
    /row-level security: control\.plans: fewer/,
  ],
  [
    'an index that holds up a large table',
    'create index on mail.dispatch (attempt)',
    /mail\.dispatch is read as a whole/,
  ],
  [
    'the same, of a table in partitions',
    'create index on mail.events (type)',
    /mail\.events is read as a whole/,
  ],
  [
    'a large table that is written anew',
    'alter table mail.suppressions add column number uuid not null default gen_random_uuid()',
    /mail\.suppressions is written anew/,
  ],
  [
    'a large table that is held during something long',
    'alter table mail.messages add column colour text; update control.projects set name = name',
    /mail\.messages is held while something else is read/,
  ],
  [
    'what a procedure hides',
    `do $$ begin execute format('alter table %s drop column %I', 'control.plans', 'price'); end $$`,
    /column is gone: control\.plans\.price/,
  ],
]

describe('a migration is refused that brings', () => {
  for (const [what, sql, finding] of refused)
    test(what, async () => {
      const { contracts, blocks } = await judged(sql)
      assert.match([...contracts, ...blocks].join('\n'), finding)
    })
})

describe('a migration may bring', () => {
  const allowed: [what: string, sql: string][] = [
    [
      'a table with everything on it',
      `create table control.colours (id bigint primary key, project_id bigint not null references control.projects,
         name text not null unique check (name <> ''));
       grant select on control.colours to postern_admin; create index on control.colours (name)`,
    ],
    ['a column that may be empty', 'alter table mail.messages add column colour text'],
    [
      'a column with a default',
      `alter table control.projects add column colour text not null default 'red',
         add check (colour <> '') not valid`,
    ],
    ['an index on a small table', 'create index on control.domains (created_at)'],
    ['an index for the partitions to come', 'create index on only mail.events (type)'],
    [
      'a rule for what is written from now on',
      `alter table mail.daily_counters add constraint sane check (sent >= 0) not valid`,
    ],
    [
      'a wider rule in place of a narrower one',
      'alter table control.plans alter column description drop not null',
    ],
    ['another right', 'grant update on control.audit_heads to postern_readonly'],
    ['an index less', 'drop index control.domains_by_name'],
  ]
  for (const [what, sql] of allowed)
    test(what, async () => {
      assert.deepEqual(await judged(sql), { contracts: [], blocks: [] })
    })

  test('the check of what was added unchecked, a file later', async () => {
    await database.query('alter table mail.daily_counters add constraint sane check (sent >= 0) not valid')
    assert.deepEqual(await judged('alter table mail.daily_counters validate constraint sane'), {
      contracts: [],
      blocks: [],
    })
  })
})

describe('a contract', () => {
  const drop = '-- Colours are gone.\n-- contract: since 0.3.0 nothing uses control.projects.colour\nalter …'

  test('is one by the comment at its head', () => {
    assert.equal(contractFaults('alter table …', ['0.3.0']), undefined)
    assert.equal(contractFaults(`alter …;\n${drop}`, ['0.3.0']), undefined)
    assert.deepEqual(contractFaults(drop, ['0.2.0', '0.3.0']), [])
  })

  test('comes after the release that has stopped using what it takes away', () => {
    assert.match(contractFaults(drop, ['0.2.0'])?.join() ?? '', /since 0\.3\.0, which is not released/)
  })

  test('looks for releases in the changelog', () => {
    assert.deepEqual(
      releasesIn('# Log\n\n## Unreleased\n\n## [0.3.0] - 2027-01-02\n### Added 0.9.9\n## 0.2.0\n'),
      ['0.3.0', '0.2.0'],
    )
  })
})
