import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import pg from 'pg'
import { circumstances } from '../bench/figures.ts'
import { type Postern, startPostern } from '../bench/postern.ts'
import { creator, makeSenders } from '../bench/senders.ts'
import { startSink } from '../bench/sink.ts'
import { giveToPostgres, startCluster } from '../server/src/testing/peers/postgres.ts'
import { Ledger } from './ledger.ts'
import { startLoad } from './load.ts'
import { say, seedOf } from './run.ts'

/**
 * `npm run prove:restore`: takes a backup under load, chooses a recovery target, makes further changes and drops
 * tables; then restores everything up to the target in a new cluster. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    'seconds-between': { type: 'string', default: '3' },
    programs: { type: 'string', default: '4' },
    'pause-ms': { type: 'string', default: '100' },
  },
})
const seed = seedOf(options.seed)
const betweenMs = Number(options['seconds-between']) * 1000
const run = promisify(execFile)
const deployed = path.resolve(import.meta.dirname, '../deploy/pgbackrest')
const faults: string[] = []
const plan = {
  description: '',
  support_level: 'community',
  max_domains: 1,
  max_users: 1,
  max_mails_per_day: 1,
  max_mails_per_month: 1,
  billing_product_id: null,
  price: 0,
  is_active: true,
}

const home = await mkdtemp(path.join(tmpdir(), 'postern-restore-'))
const place = (name: string): string => path.join(home, name)
const data = place('postgres')
// Set as in the systemd units of PostgreSQL and the timer. PostgreSQL passes it on to the archive command.
Object.assign(process.env, {
  PGBACKREST_CONFIG: place('pgbackrest.conf'),
  PGBACKREST_REPO1_PATH: place('repository'),
  PGBACKREST_REPO1_CIPHER_PASS: randomBytes(24).toString('hex'),
  PGBACKREST_PG1_PATH: path.join(data, 'data'),
  PGBACKREST_LOG_PATH: place('log'),
  PGBACKREST_LOCK_PATH: place('lock'),
  PGBACKREST_SPOOL_PATH: place('spool'),
  PGHOST: '127.0.0.1',
})

try {
  for (const name of ['', 'repository', 'log', 'lock', 'spool', 'postgres', 'restored']) await makePlace(name)
  await copyFile(path.join(deployed, 'pgbackrest.conf'), place('pgbackrest.conf'))
  say(`Backup, data loss and point-in-time recovery, seed ${seed}`)
  await loseAndRestore()
} finally {
  await rm(home, { recursive: true, force: true })
}
for (const fault of faults) say(`FAULT: ${fault}`)
say(faults.length === 0 ? 'Everything up to the recovery target was restored.' : `${faults.length} faults.`)
if (faults.length > 0) process.exitCode = 1

/** A folder that PostgreSQL's user can write to. */
async function makePlace(name: string): Promise<void> {
  await mkdir(place(name), { recursive: true, mode: 0o700 })
  await giveToPostgres(place(name))
}

/** Runs as the PostgreSQL user, who owns the files. */
async function pgbackrest(...args: string[]): Promise<void> {
  const command = ['pgbackrest', '--stanza=postern', ...args]
  const [file = '', ...rest] =
    userInfo().uid === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command
  await run(file, rest, { cwd: home, maxBuffer: 64 * 1024 * 1024 })
}

async function loseAndRestore(): Promise<void> {
  const sink = await startSink(place('received'), 5)
  const postern = await startPostern({
    data,
    settings: await archiving(),
    environment: {
      POSTERN_AUDIT_CHECKPOINT_FILE: place('checkpoints.ndjson'),
      POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}`,
    },
  })
  try {
    const before = await untilDisaster(postern)
    const at = Date.now()
    await pgbackrest(
      ...['--type=time', `--target=${before.moment}`, '--target-action=promote', '--archive-mode=off'],
      ...[`--pg1-path=${place('restored/data')}`, 'restore'],
    )
    const copiedMs = Date.now() - at
    const restored = await startCluster({ directory: place('restored') })
    try {
      await checkRestored(postern, restored.url.replace(/postgres$/, 'postern'), before, {
        at,
        copiedMs,
        sink,
      })
    } finally {
      await restored.stop()
    }
  } finally {
    sink.stop()
    await postern.stop()
  }
}

/** The deployed settings, as server options. */
async function archiving(): Promise<Record<string, string>> {
  const lines = (await readFile(path.join(deployed, 'archive.conf'), 'utf8')).matchAll(
    /^(\w+) = '?(.*?)'?$/gm,
  )
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]))
}

interface Before {
  /** The recovery target, by the database's clock and in PostgreSQL's format. */
  moment: string
  /** Messages acknowledged before the target (`kept`) and after it (`later`). */
  kept: { id: string; recipient: string }[]
  later: { id: string; recipient: string }[]
  auditRows: number
  backupMs: number
}

async function untilDisaster(postern: Postern): Promise<Before> {
  const { superuser } = postern
  const port = new URL(postern.ownerUrl).port
  process.env['PGBACKREST_PG1_PORT'] = port
  await pgbackrest('stanza-create')
  await pgbackrest('check')
  const senders = await makeSenders(postern, 2)
  const create = await creator(postern)
  const worker = await postern.start('worker')
  const ledger = await Ledger.open(path.join(postern.directory, 'promised'))
  const load = startLoad({
    ...{ url: postern.url, senders, ledger, seed },
    ...{ programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
  })
  const act = (name: string) => create('/plans', { ...plan, name })

  await sleep(betweenMs)
  const startedAt = Date.now()
  await pgbackrest('--type=full', 'backup')
  const backupMs = Date.now() - startedAt
  for (let number = 1; number <= 5; number++) await act(`Before ${number}`)
  await sleep(betweenMs)
  await postern.call(['audit', 'checkpoint'])
  // Stands for a copy made on another machine at that time.
  await copyFile(place('checkpoints.ndjson'), place('checkpoints-of-the-moment.ndjson'))
  const kept = [...load.loadResults.promised]
  const { rows } = await superuser.query<{ moment: string; audit: string }>(
    'select clock_timestamp()::text as moment, (select count(*) from control.audit) as audit',
  )

  for (let number = 1; number <= 5; number++) await act(`After ${number}`)
  await sleep(betweenMs)
  await postern.call(['audit', 'checkpoint'])
  await load.stop()
  await worker.stop()
  await ledger.close()
  const later = load.loadResults.promised.filter((mail) => !kept.includes(mail))
  await superuser.query('drop table mail.recipients, mail.messages, control.plans cascade')
  await archived(superuser)
  return { moment: rows[0]?.moment ?? '', kept, later, auditRows: Number(rows[0]?.audit), backupMs }
}

/** Waits until all WAL, including the WAL of the data loss, is in the repository. */
async function archived(superuser: pg.Client): Promise<void> {
  const { rows } = await superuser.query<{ last: string }>(`select pg_walfile_name(pg_switch_wal()) as last`)
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(200)) {
    const { rowCount } = await superuser.query('select from pg_stat_archiver where last_archived_wal >= $1', [
      rows[0]?.last,
    ])
    if (rowCount === 1) return
  }
  throw new Error('the WAL was not archived')
}

interface Restoring {
  at: number
  copiedMs: number
  sink: Awaited<ReturnType<typeof startSink>>
}

async function checkRestored(
  postern: Postern,
  url: string,
  before: Before,
  { at, copiedMs, sink }: Restoring,
) {
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  const ask = async <T extends pg.QueryResultRow>(text: string): Promise<T[]> =>
    (await pool.query<T>(text)).rows
  while ((await ask<{ on: boolean }>('select pg_is_in_recovery() as on'))[0]?.on) await sleep(100)
  const seconds = ((Date.now() - at) / 1000).toFixed(1)

  const stored = await ask<{ id: string; recipient: string; status: string }>(
    'select message_id as id, address as recipient, status from mail.recipients',
  )
  const keyOf = ({ id, recipient }: { id: string; recipient: string }): string => `${id} ${recipient}`
  const there = new Set(stored.map(keyOf))
  const lost = before.kept.filter((mail) => !there.has(keyOf(mail)))
  const forgotten = before.later.filter((mail) => !there.has(keyOf(mail)))
  const received = new Set(
    (await sink.read()).map(({ messageId, recipient }) =>
      keyOf({ id: messageId.split('@')[0] ?? '', recipient }),
    ),
  )
  const again = stored.filter((mail) => mail.status === 'queued' && received.has(keyOf(mail)))
  const [audit] = await ask<{ rows: string }>('select count(*) as rows from control.audit')
  const plans = await ask<{ name: string }>('select name from control.plans order by id')
  if (before.kept.length === 0 || before.later.length === 0)
    faults.push('no messages were acknowledged before or after the recovery target')
  if (lost.length > 0)
    faults.push(
      `${lost.length} messages from before the recovery target are lost, such as ${JSON.stringify(lost[0])}`,
    )
  if (forgotten.length === 0) faults.push('data from after the recovery target was also restored')
  if (Number(audit?.rows) !== before.auditRows)
    faults.push(`${audit?.rows} audit rows instead of ${before.auditRows}`)
  if (plans.some(({ name }) => name.startsWith('After')))
    faults.push('a plan from after the recovery target was restored')
  await verify(postern, url)
  await keepBack(postern, url, sink)
  say(`\n${await circumstances(pool)}; seed ${seed}`)
  say(
    `full backup under load ${(before.backupMs / 1000).toFixed(1)} s; restored to ${before.moment} in ${seconds} s, ${(copiedMs / 1000).toFixed(1)} s of them copying`,
  )
  say(
    `messages acknowledged before the target ${before.kept.length}, lost ${lost.length}; after it ${before.later.length}, gone ${forgotten.length}`,
  )
  say(`sent before the disaster, and to be sent again when the queue is released: ${again.length}`)
  await pool.end()
}

function onRestored(url: string): Record<string, string> {
  return {
    POSTERN_DATABASE_URL: url.replace('postgres@', 'postern_app@'),
    POSTERN_DATABASE_OWNER_URL: url,
  }
}

/** While all mail is on hold, a worker must not send due messages. */
async function keepBack(postern: Postern, url: string, sink: Restoring['sink']): Promise<void> {
  const environment = onRestored(url)
  const reason = 'Restored to an earlier moment'
  const held = await postern.call(['queue', 'hold', '--all', '--reason', reason], { environment })
  if (held.status !== 0) faults.push(`postern queue hold: ${held.stderr}`)
  const before = sink.count()
  const worker = await postern.start('worker', { environment })
  await sleep(betweenMs)
  await worker.stop()
  if (sink.count() !== before) faults.push(`${sink.count() - before} messages were sent despite the hold`)
}

/** The audit log must be valid against the checkpoints copied at the target, and invalid against later ones. */
async function verify(postern: Postern, url: string): Promise<void> {
  const environment = onRestored(url)
  const against = (file: string) =>
    postern.call(['audit', 'verify', '--checkpoints', place(file)], { environment })
  const upToThen = await against('checkpoints-of-the-moment.ndjson')
  if (upToThen.status !== 0) faults.push(`the audit does not verify: ${upToThen.stdout}${upToThen.stderr}`)
  const beyond = await against('checkpoints.ndjson')
  if (beyond.status !== 1)
    faults.push(`verification does not detect the rows lost by the restore: ${beyond.stdout}${beyond.stderr}`)
  const migrated = await postern.call(['migrate'], { environment })
  if (migrated.status !== 0) faults.push(`postern migrate: ${migrated.stderr}`)
  say(`audit verify, up to the target: ${upToThen.stdout.trim()}`)
  say(`audit verify, with later checkpoints: ${beyond.stdout.trim()}${beyond.stderr.trim()}`)
}
