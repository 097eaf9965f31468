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

/** Whether each cell's copy of control is up to date (platform/db/replica-age.ts). */
export const cellChecks: Check[] = [
  {
    name: 'cells',
    needs: 'tables',
    async look(ground) {
      if (ground.cells.length === 0) return [ok(noCopies)]
      const inControl = await ground.db.readOne(findHeartbeat)
      if (!inControl || inControl.age_seconds > lateSeconds) {
        const since = inControl ? `for ${Math.round(inControl.age_seconds)} seconds` : 'yet'
        return [
          failure(
            `No heartbeat has been written in control ${since}: cells stop sending.`,
            'Start `postern worker` without POSTERN_CELL. If one runs, its log says what is wrong.',
          ),
        ]
      }
      return unlessFound(
        await Promise.all(ground.cells.map((cell) => copyFinding(cell, ground))),
        'Every cell has an up-to-date copy of control.',
      )
    },
  },
  {
    name: 'cells.clock',
    needs: 'tables',
    async look(ground) {
      if (ground.cells.length === 0) return [ok(noCopies)]
      return unlessFound(
        await Promise.all(ground.cells.map((cell) => clockFinding(cell, ground))),
        'The clocks of the cells agree with that of control.',
      )
    },
  },
]

const noCopies = 'Mail is in the database of control: there is no copy that could be too old.'
/** The heartbeat is written every two seconds. */
const lateSeconds = 30

async function copyFinding(
  { name, mail }: Cell,
  { settings: { controlCopyMaxAgeSeconds: limit } }: DoctorContext,
): Promise<Finding | undefined> {
  const join = `Read the log of the cell's PostgreSQL server, then run \`postern cell join --name ${name}\`.`
  try {
    const heartbeat = await mail.readOne(findHeartbeat)
    if (!heartbeat) return failure(`Cell "${name}" has no heartbeat of control: it sends nothing.`, join)
    const seconds = Math.round(heartbeat.age_seconds)
    const age = `The copy of control in cell "${name}" is ${seconds} seconds old`
    if (seconds > limit) return failure(`${age}: the cell sends nothing.`, join)
    if (seconds > lateSeconds) return warning(`${age}; the cell stops sending at ${limit}.`, join)
    return undefined
  } catch (error) {
    return failure(
      `The database of cell "${name}" cannot be used: ${messageOf(error)}.`,
      'Check its "url" in POSTERN_CELLS, the network, and the log of its PostgreSQL server.',
    )
  }
}

/** A cell whose clock is behind control's takes its copy for younger than it is. */
const clockWarningMs = 2_000
const clockFailureMs = 30_000

async function clockFinding({ name, mail }: Cell, { db }: DoctorContext): Promise<Finding | undefined> {
  // A first connection takes time of its own.
  const isThere = await mail.readOne(findEpochMs).catch(() => undefined)
  if (isThere === undefined) return undefined
  const before = performance.now()
  const inControl = await db.readOne(findEpochMs)
  const inCell = await mail.readOne(findEpochMs)
  const passedMs = (performance.now() - before) / 2
  const apartMs = Math.abs(inCell - inControl - passedMs)
  const finding = `The clocks of control and of cell "${name}" are ${Math.round(apartMs / 1000)} seconds apart.`
  const remedy = 'Keep the clocks of both servers synchronised by NTP (chrony or systemd-timesyncd).'
  if (apartMs > clockFailureMs) return failure(finding, remedy)
  return apartMs > clockWarningMs ? warning(finding, remedy) : undefined
}
