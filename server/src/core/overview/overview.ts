import type { Static } from 'typebox'
import { databaseTime } from '../../platform/db/clock.ts'
import type { Db, ReadTx } from '../../platform/db/db.ts'
import { readWithin } from '../../platform/db/read-cells.ts'
import { PosternError } from '../../platform/errors.ts'
import { readAttention } from '../control/attention/attention.ts'
import { auditView, searchAudit } from '../control/audit/audit.ts'
import { listDispatchHolds } from '../control/holds/global-holds.ts'
import { listAllPolicies } from '../control/policies/policies.ts'
import { type QueueState, readControlState, readQueueState } from '../gauges/queue-gauges.ts'
import { listHourTotals, type Totals } from '../mail/counters/totals.ts'
import { figuresOf, listProviderTotals, type ProviderCounts } from '../mail/mailbox-providers/figures.ts'
import { listProcesses, type ProcessRow } from '../processes/processes.ts'
import type { Overview } from './wire.ts'

/**
 * The state of the installation. Nothing here is searched for: totals of mail and projects that need attention are kept as
 * they change, and everything else is read from the start of an index. The number of statements and of rows is the same for
 * any number of projects.
 */
export interface OverviewDeps {
  /** The control database. */
  db: Db
  cells: readonly CellDb[]
}

export interface CellDb {
  name: string
  /** With the mail role: its statements use an index, however small the tables are or were. */
  db: Db
}

type View = Static<typeof Overview>

const actsShown = 10
const hoursShown = 24
const hourMs = 3_600_000
const cellTimeoutMs = 3_000

export async function readOverview({ db, cells }: OverviewDeps, timeoutMs = cellTimeoutMs): Promise<View> {
  const [control, ...found] = await Promise.all([
    db.read(readControl),
    ...cells.map((cell) => readCell(cell, timeoutMs)),
  ])
  const { processes, holds, ...rest } = control
  const reached = found.flatMap(({ state }) => state ?? [])
  return {
    ...rest,
    mail: mailOf(control.at, reached),
    queue: { ...queueOf(reached), holds },
    cells: found.map(cellView),
    processes: processesOf([...processes, ...reached.flatMap((cell) => cell.processes)]),
  }
}

async function readControl(tx: ReadTx) {
  const at = await databaseTime(tx)
  const state = await readControlState(tx)
  const attention = await readAttention(tx)
  const policies = await listAllPolicies(tx)
  const acts = await searchAudit(tx, { limit: actsShown })
  return {
    at: at.toISOString(),
    holds: await listDispatchHolds(tx),
    processes: await listProcesses(tx),
    checkpoint: {
      last_at: state.last_checkpoint_at?.toISOString() ?? null,
      uncovered_seconds: ageOf(state.uncovered_seconds),
    },
    outbox_seconds: ageOf(state.outbox_seconds),
    attention,
    policies_tripped: policies.flatMap(({ id, name, tripped_at }) =>
      tripped_at === null ? [] : [{ id, name, tripped_at: tripped_at.toISOString() }],
    ),
    acts: acts.rows.map(auditView),
  }
}

interface CellData {
  hours: Awaited<ReturnType<typeof listHourTotals>>
  mailboxProviders: ProviderCounts[]
  queue: QueueState
  processes: ProcessRow[]
}

interface FoundCell {
  name: string
  /** Undefined if the database did not answer. */
  state: CellData | undefined
}

/** A cell that is unavailable or slow does not delay the response. */
async function readCell({ name, db }: CellDb, timeoutMs: number): Promise<FoundCell> {
  const reading = readWithin(db, timeoutMs, async (tx) => ({
    hours: await listHourTotals(tx),
    mailboxProviders: await listProviderTotals(tx),
    queue: await readQueueState(tx),
    processes: await listProcesses(tx),
  }))
  const state = await reading.catch((error: unknown) => {
    if (error instanceof PosternError && error.code === 'unavailable') return undefined
    throw error
  })
  return { name, state }
}

const cellView = ({ name, state }: FoundCell): View['cells'][number] => ({
  name,
  is_reachable: state !== undefined,
  counted_until: state?.hours.at(-1)?.counted_until.toISOString() ?? null,
  outbox_seconds: ageOf(state?.queue.mail.outbox_seconds ?? null),
})

const noMail: Totals = {
  ...{ sent: 0, delivered: 0, deferred: 0, bounced: 0, failed: 0, complained: 0, suppressed: 0, rejected: 0 },
}

function sumOf(all: readonly Totals[]): Totals {
  const sum = { ...noMail }
  for (const totals of all) for (const kind of kinds) sum[kind] += totals[kind]
  return sum
}
const kinds = Object.keys(noMail) as (keyof Totals)[]

/** Without `rejected`, which is part of `bounced` and `failed`. */
const countsOf = ({ rejected: _rejected, ...counts }: Totals) => counts

function mailOf(at: string, cells: readonly CellData[]): View['mail'] {
  const all = cells.flatMap(({ hours }) => hours)
  const current = Math.floor(Date.parse(at) / hourMs) * hourMs
  const hours = Array.from({ length: hoursShown }, (_none, ago) => {
    const start = current - ago * hourMs
    return { start, totals: sumOf(all.filter(({ starts_at }) => starts_at.getTime() === start)) }
  })
  const total = sumOf(hours.map(({ totals }) => totals))
  const volume = total.sent + total.rejected
  const rateOf = (counted: number) => (volume === 0 ? null : (100 * counted) / volume)
  return {
    hours: hours.map(({ start, totals }) => ({
      starts_at: new Date(start).toISOString(),
      ...countsOf(totals),
    })),
    total: countsOf(total),
    bounce_rate: rateOf(total.bounced),
    complaint_rate: rateOf(total.complained),
    failure_rate: rateOf(total.failed),
    mailbox_providers: figuresOf(cells.flatMap(({ mailboxProviders }) => mailboxProviders)),
  }
}

const states = ['ready', 'leased', 'deferred', 'scheduled', 'awaiting'] as const
const providers = ['service', 'ses', 'none'] as const

const queueOf = (cells: readonly CellData[]): Omit<View['queue'], 'holds'> => ({
  states: Object.fromEntries(
    states.map((state) => [state, cells.reduce((sum, { queue }) => sum + queue.mail[state], 0)]),
  ) as View['queue']['states'],
  oldest_ready: providers.flatMap((provider) => {
    const ages = cells.flatMap(({ queue }) => queue.oldest.filter((lane) => lane.provider === provider))
    return ages.length === 0
      ? []
      : [{ provider, seconds: Math.max(0, ...ages.map(({ seconds }) => seconds)) }]
  }),
})

/** Without cells, the processes are read twice from the same database. */
function processesOf(rows: readonly ProcessRow[]): View['processes'] {
  const byId = new Map(rows.map((row) => [row.id, row]))
  return [...byId.values()]
    .toSorted((one, other) => Number(one.is_alive) - Number(other.is_alive) || compareNames(one, other))
    .map(({ started_at, seen_at, ...row }) => ({
      ...row,
      started_at: started_at.toISOString(),
      seen_at: seen_at.toISOString(),
    }))
}

const compareNames = (one: ProcessRow, other: ProcessRow): number =>
  one.kind.localeCompare(other.kind) || one.host.localeCompare(other.host) || one.id.localeCompare(other.id)

/** A row can be newer than the time at which the transaction began. */
const ageOf = (seconds: number | null): number | null => (seconds === null ? null : Math.max(0, seconds))
