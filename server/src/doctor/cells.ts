import type { Cell } from '../platform/db/cells.ts'
import { findHeartbeat } from '../platform/db/replica-age.ts'
import { findEpochMs } from './cells.sql.ts'
import {
  type Check,
  type DoctorContext,
  type Finding,
  failure,
  messageOf,
  ok,
  unlessFound,
  warning,
} from './check.ts'

/** Checks that each cell's replica of the control database is up to date (platform/db/replica-age.ts). */
export const cellChecks: Check[] = [
  {
    name: 'cells',
    needs: 'tables',
    async run(context) {
      if (context.cells.length === 0) return [ok(noReplicas)]
      const inControl = await context.db.readOne(findHeartbeat)
      if (!inControl || inControl.age_seconds > lateSeconds) {
        const since = inControl ? `for ${Math.round(inControl.age_seconds)} seconds` : 'yet'
        return [
          failure(
            `No heartbeat has been written to the control database ${since}, so cells stop sending.`,
            'Start `postern worker` without POSTERN_CELL. If one is running, read its log.',
          ),
        ]
      }
      return unlessFound(
        await Promise.all(context.cells.map((cell) => replicaFinding(cell, context))),
        'The control replica of every cell is up to date.',
      )
    },
  },
  {
    name: 'cells.clock',
    needs: 'tables',
    async run(context) {
      if (context.cells.length === 0) return [ok(noReplicas)]
      return unlessFound(
        await Promise.all(context.cells.map((cell) => clockFinding(cell, context))),
        'The clocks of control and the cells are synchronized.',
      )
    },
  },
]

const noReplicas = 'Mail is stored in the control database, so there are no replicas to check.'
/** The heartbeat is written every two seconds. */
const lateSeconds = 30

async function replicaFinding(
  { name, mail }: Cell,
  { settings: { controlReplicaMaxAgeSeconds: limit } }: DoctorContext,
): Promise<Finding | undefined> {
  const join = `Read the log of the cell's PostgreSQL server, then run \`postern cell join --name ${name}\`.`
  try {
    const heartbeat = await mail.readOne(findHeartbeat)
    if (!heartbeat)
      return failure(`Cell "${name}" has received no heartbeat from control: it sends nothing.`, join)
    const seconds = Math.round(heartbeat.age_seconds)
    const age = `The control replica of cell "${name}" is ${seconds} seconds old`
    if (seconds > limit) return failure(`${age}: the cell sends nothing.`, join)
    if (seconds > lateSeconds) return warning(`${age}; the cell stops sending at ${limit} seconds.`, join)
    return undefined
  } catch (error) {
    return failure(
      `The database of cell "${name}" cannot be used: ${messageOf(error)}.`,
      'Check its "url" in POSTERN_CELLS, the network, and its PostgreSQL server\'s log.',
    )
  }
}

/** A cell whose clock is behind the control database's clock underestimates the age of its replica. */
const clockWarningMs = 2_000
const clockFailureMs = 30_000

async function clockFinding({ name, mail }: Cell, { db }: DoctorContext): Promise<Finding | undefined> {
  // The first call opens the connection. Measuring it would distort the result.
  const isThere = await mail.readOne(findEpochMs).catch(() => undefined)
  if (isThere === undefined) return undefined
  const before = performance.now()
  const inControl = await db.readOne(findEpochMs)
  const inCell = await mail.readOne(findEpochMs)
  const passedMs = (performance.now() - before) / 2
  const apartMs = Math.abs(inCell - inControl - passedMs)
  const finding = `The clocks of control and cell "${name}" are ${Math.round(apartMs / 1000)} seconds apart.`
  const remedy = 'Synchronize the clocks of both servers with NTP (chrony or systemd-timesyncd).'
  if (apartMs > clockFailureMs) return failure(finding, remedy)
  return apartMs > clockWarningMs ? warning(finding, remedy) : undefined
}
