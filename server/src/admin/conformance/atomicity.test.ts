import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { sampleOf } from '../../testing/harness/sample.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/**
 * Faults are injected into the database late in every mutation's transaction. The change, its audit row and its stored
 * response must all be rolled back. The requests are prepared once and run with one fault after another. This works
 * only because a failed request leaves nothing behind. At the end all of them succeed.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)

interface Request {
  name: string
  operation: Mutation
  path: string
  body: object
  headers: Record<string, string>
}

const requests: Request[] = []
for (const operation of adminOperations.filter(isMutation)) {
  const scenarios = mutationScenarios(database, admin)[operation.id] ?? []
  for (const { what, changesNothing, prepare } of scenarios) {
    if (changesNothing) continue
    const { path, body } = await prepare()
    const name = `${operation.id}, which ${what}`
    const headers = { 'idempotency-key': name.replaceAll(' ', '-') }
    requests.push({ name, operation, path, body: { ...body, reason }, headers })
  }
}

const send = ({ operation, path, body, headers }: Request, query = ''): Promise<Answer> =>
  admin.request(methodOf(operation), `${path}${query}`, body, headers)

const injected = 'an injected fault'

await database.query(`
  create schema faults;
  create sequence faults.tries;
  create function faults.fail() returns trigger language plpgsql as
    $$ begin raise exception '${injected}'; end $$;
  create function faults.collide() returns trigger language plpgsql as
    $$ begin raise exception '${injected}' using errcode = 'serialization_failure'; end $$;
  create function faults.collide_twice() returns trigger language plpgsql security definer as
    $$ begin
      if nextval('faults.tries') % 3 <> 0 then
        raise exception '${injected}' using errcode = 'serialization_failure';
      end if;
      return null;
    end $$;
  -- The signal is processed at the next wait.
  create function faults.die() returns trigger language plpgsql security definer as
    $$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); return null; end $$;`)

interface Fault {
  what: string
  trigger: string
  status: 500 | 503
  /** The log entry that shows that the request hit this fault. */
  logged: string
  applies?: (request: Request) => boolean
  message?: RegExp
}

/** Fails at the commit, after all statements. */
const late = (table: string, action: string, events = 'insert'): string =>
  `constraint trigger fault after ${events} on ${table} deferrable initially deferred for each row
     execute function faults.${action}()`

const early = (table: string, action: string, events = 'insert or update'): string =>
  `trigger fault after ${events} on ${table} for each statement execute function faults.${action}()`

const killed = 'terminating connection due to administrator command'

const faults: Fault[] = [
  {
    what: 'if the audit row cannot be written',
    trigger: early('control.audit', 'fail', 'insert'),
    status: 500,
    logged: injected,
  },
  {
    what: 'if the head of the audit chain cannot be updated',
    trigger: early('control.audit_heads', 'fail'),
    status: 500,
    logged: injected,
  },
  {
    what: 'if the personal data of the audit row cannot be written',
    trigger: early('control.audit_people', 'fail', 'insert'),
    status: 500,
    logged: injected,
  },
  {
    what: 'if the response cannot be stored for repetitions',
    trigger: early('control.idempotency', 'fail'),
    status: 500,
    logged: injected,
    applies: ({ headers }) => 'idempotency-key' in headers,
  },
  {
    what: 'if the commit fails',
    trigger: late('control.audit', 'fail'),
    status: 500,
    logged: injected,
  },
  {
    what: 'if every attempt ends in a serialization failure',
    trigger: early('control.audit', 'collide', 'insert'),
    status: 503,
    logged: injected,
  },
  {
    what: 'if the connection is lost before the commit',
    trigger: early('control.audit', 'die', 'insert'),
    status: 503,
    logged: killed,
  },
  {
    what: 'if the connection is lost during the commit',
    trigger: late('control.audit', 'die'),
    status: 503,
    logged: killed,
    message: /outcome is unknown/,
  },
]

async function withTrigger(trigger: string, work: () => Promise<void>): Promise<void> {
  const [, table] = / on (\S+)/.exec(trigger) ?? assert.fail()
  await database.query(`create ${trigger}`)
  try {
    await work()
  } finally {
    await database.query(`drop trigger fault on ${table}`)
  }
}

/** The state before the first request and after each one. */
let kept = await watchRows(database)

async function assertFails(request: Request, { status, logged, message = /\.$/ }: Fault): Promise<void> {
  const answer = await send(request)
  const error = status === 500 ? 'internal_error' : 'unavailable'
  assert.deepEqual([request.name, answer.status, answer.body.error], [request.name, status, error])
  assert.deepEqual(Object.keys(answer.body), ['error', 'message'])
  assert.match(answer.body.message, message)
  assert.doesNotMatch(answer.text, new RegExp(`${injected}|terminating|audit|faults`))
  await kept.assertUntouched(`${request.name} left something behind`)
  const id = answer.headers.get('x-request-id') ?? assert.fail()
  assert.ok(
    api.logLines.some((line) => line.includes(id) && line.includes(logged)),
    `${request.name} did not meet the fault`,
  )
}

/** The pipeline is the same for all operations of a kind. */
const kindOf = ({ operation }: Request): string => operation.kind

describe('a mutation leaves nothing behind and can be repeated', () => {
  for (const fault of faults) {
    test(fault.what, async () => {
      const concerned = sampleOf(requests.filter(fault.applies ?? (() => true)), 3, kindOf)
      assert.notEqual(concerned.length, 0)
      kept = await watchRows(database)
      await withTrigger(fault.trigger, async () => {
        for (const request of concerned) await assertFails(request, fault)
      })
    })
  }

  test('if a table that it changes cannot be written, in the statement or at the commit', async () => {
    const written = await writtenTables()
    kept = await watchRows(database)
    const events = 'insert or update or delete'
    for (const [table, concerned] of written) {
      for (const trigger of [early(table, 'fail', events), late(table, 'fail', events)]) {
        const fault: Fault = { what: table, trigger, status: 500, logged: injected }
        await withTrigger(trigger, async () => {
          for (const request of sampleOf(concerned, 4, kindOf)) await assertFails(request, fault)
        })
      }
    }
    for (const request of requests) {
      assert.ok(
        [...written.values()].some((concerned) => concerned.includes(request)),
        `${request.name} wrote nothing`,
      )
    }
  })

  test('after the fault: each of the same requests takes effect once, even if transactions conflict', async () => {
    await withTrigger(early('control.audit', 'collide_twice', 'insert'), async () => {
      for (const request of requests) {
        const answer = await send(request)
        assert.ok(answer.status < 300, `${request.name}: ${answer.text}`)
        assert.equal(answer.headers.get('idempotent-replayed'), null, request.name)
        const rows = await database.query('select from control.audit where request_id = $1', [
          answer.headers.get('x-request-id'),
        ])
        assert.equal(rows.length, 1, request.name)
      }
    })
    const [row] = await database.query<{ last_value: string }>('select last_value from faults.tries')
    assert.equal(Number(row?.last_value), requests.length * 3, 'each was tried three times')
  })
})

/**
 * The tables that an operation writes in addition to the audit log and the stored responses. They are detected with
 * sequences, which are not rolled back, so a dry run is enough.
 */
async function writtenTables(): Promise<Map<string, Request[]>> {
  await database.query(`
    create schema touched;
    create function touched.note() returns trigger language plpgsql security definer as
      $$ begin perform nextval(format('touched.%I', tg_table_name)); return null; end $$;
    do $$ declare place record; begin
      for place in select schemaname, tablename from pg_tables
                    where schemaname = 'control' or (schemaname = 'jobs' and tablename = 'job_common') loop
        execute format('create sequence touched.%I', place.tablename);
        execute format('create trigger touched after insert or update or delete on %I.%I for each row '
                       'execute function touched.note()', place.schemaname, place.tablename);
      end loop;
    end $$;`)
  const counts = async () =>
    new Map(
      (
        await database.query<{ name: string; count: string | null }>(
          `select sequencename as name, last_value as count from pg_sequences where schemaname = 'touched'`,
        )
      ).map(({ name, count }) => [name, count]),
    )
  const written = new Map<string, Request[]>()
  for (const request of requests) {
    const before = await counts()
    assert.equal((await send(request, '?dry_run=true')).status, 200)
    for (const [name, count] of await counts()) {
      if (count === before.get(name)) continue
      // Its preview also tries the operation for each project.
      if (request.operation.id === 'bulk.create' && !name.startsWith('bulk_')) continue
      const table = name === 'job_common' ? `jobs.${name}` : `control.${name}`
      written.set(table, [...(written.get(table) ?? []), request])
    }
  }
  return written
}
