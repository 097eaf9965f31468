import { randomUUIDv7 } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Context } from '../context/context.ts'
import { type Change, recordAudit, shell } from '../core/control/audit/record.ts'
import {
  type HoldScope,
  holdDispatch,
  holdScopes,
  releaseDispatch,
} from '../core/control/holds/global-holds.ts'
import { holdQueue, releaseQueue } from '../core/control/holds/project-holds.ts'
import { lockProject, requireProject } from '../core/control/projects/projects.ts'
import {
  type HandedOver,
  handedOverDays,
  handedOverOf,
  overviewOf,
  type QueueOverview,
} from '../core/mail/dispatch/queue-overview.ts'
import { countText } from '../core/shared/counts.ts'
import type { Db, Tx } from '../platform/db/db.ts'
import { PosternError, UsageError } from '../platform/errors.ts'
import { command, print, reasonOf } from './command.ts'
import { withContext } from './with-context.ts'

/** `postern queue`: shows the mail that is waiting to be sent, holds it, and releases it. */
export const queue = command('queue', {
  async show({ project, limit, json }) {
    const projectId = project === undefined ? undefined : projectOf(project)
    const atMost = limitOf(limit)
    await withContext(async (context) => {
      if (projectId !== undefined)
        await existing(
          projectId,
          context.db.admin.read((tx) => requireProject(tx, projectId)),
        )
      const db = mailDbOf(context, projectId)
      const overview = await overviewOf(db, projectId, lanesAtMost)
      const handedOver = await handedOverOf(db, projectId, atMost)
      const text = () => `${overviewText(overview)}\n\n${handedOverText(handedOver)}`
      print(json, { ...overview, handed_over: handedOver }, text)
    })
  },
  async hold({ reason, limit, json, ...where }) {
    const scope = scopeOf(where)
    const atMost = limitOf(limit)
    await withContext(async (context) => {
      const hasChanged = await setHold(context, scope, true, reasonOf(reason))
      const result = hasChanged ? `Held: ${scope.name}.` : `Already held: ${scope.name}.`
      // The hold is already in effect, even if the cell's database does not respond.
      const handedOver = await handedOverIn(context, scope.projectId, atMost)
      print(
        json,
        { scope: scope.name, is_held: true, has_changed: hasChanged, handed_over: handedOver },
        () =>
          `${result} Mail that is being sent right now is not affected.\n\n${handedOver ? handedOverText(handedOver) : handedOverUnknown}`,
      )
    })
  },
  async release({ reason, json, ...where }) {
    const scope = scopeOf(where)
    const hasChanged = await withContext((context) => setHold(context, scope, false, reasonOf(reason)))
    print(json, { scope: scope.name, is_held: false, has_changed: hasChanged }, () =>
      hasChanged ? `Released: ${scope.name}.` : `Was not held: ${scope.name}.`,
    )
  },
})

const lanesAtMost = 20
const handedOverUnknown =
  'Mail already handed over to an MTA cannot be listed: its database does not respond, or mail is stored in cells.'

async function handedOverIn(
  context: Context,
  projectId: number | undefined,
  atMost: number,
): Promise<HandedOver | null> {
  const cell = projectId === undefined ? context.home : context.cells.of(projectId)
  try {
    return cell ? await handedOverOf(cell.admin, projectId, atMost) : null
  } catch (error) {
    if (error instanceof PosternError && error.code === 'unavailable') return null
    throw error
  }
}

/** The database that contains the project's mail; without a project, the database of this machine's cell. */
function mailDbOf({ cells, home }: Context, projectId: number | undefined): Db {
  const cell = projectId === undefined ? home : cells.of(projectId)
  if (!cell)
    throw new UsageError('Mail is stored in cells: add --project, or choose a cell with POSTERN_CELL.')
  return cell.admin
}

interface Scope {
  name: string
  projectId: number | undefined
  /** The scope of the operator's hold, if there is no project. */
  hold: HoldScope
}

function scopeOf({
  all,
  project,
  provider,
}: {
  all: boolean
  project: string | undefined
  provider: string | undefined
}): Scope {
  if (Number(all) + Number(project !== undefined) + Number(provider !== undefined) !== 1) {
    throw new UsageError('Use exactly one of --all, --project and --provider.')
  }
  if (project !== undefined) return { name: `project ${project}`, projectId: projectOf(project), hold: 'all' }
  const hold = all ? 'all' : holdScopes.find((known) => known === provider && known !== 'all')
  if (hold === undefined) throw new UsageError(`--provider must be service or ses, not "${provider}".`)
  return { name: all ? 'all mail' : `mail to provider ${hold}`, projectId: undefined, hold }
}

function projectOf(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`--project must be a project id, not "${text}".`)
  return Number(text)
}

function limitOf(text = '100'): number {
  if (!/^\d{1,5}$/.test(text)) throw new UsageError(`--limit must be a number up to 99999, not "${text}".`)
  return Number(text)
}

/**
 * Sets or removes the hold and writes its audit row, in one transaction in the control database. Returns false if
 * nothing changed.
 */
async function setHold({ db }: Context, scope: Scope, isHeld: boolean, reason: string): Promise<boolean> {
  return db.admin.transaction(async (tx) => {
    const [change, ...related] = await changesOf(tx, scope, isHeld, reason)
    if (!change) return false
    await recordAudit(tx, {
      actor: shell(`postern, as ${userInfo().username}`),
      requestId: randomUUIDv7(),
      operation: isHeld ? 'queue.hold' : 'queue.release',
      projectId: scope.projectId ?? null,
      change,
      related,
      reason,
      limitException: null,
      subject: null,
    })
    return true
  })
}

async function changesOf(
  tx: Tx,
  { projectId, hold }: Scope,
  isHeld: boolean,
  reason: string,
): Promise<Change[]> {
  if (projectId !== undefined) {
    const project = await existing(projectId, lockProject(tx, projectId))
    return isHeld ? holdQueue(tx, project, { actorId: null, reason }) : releaseQueue(tx, project)
  }
  const hasChanged = isHeld ? await holdDispatch(tx, hold) : await releaseDispatch(tx, hold)
  const change = { resource: 'queue', id: hold, before: { is_held: !isHeld }, after: { is_held: isHeld } }
  return hasChanged ? [change] : []
}

const existing = <T>(projectId: number, found: Promise<T>): Promise<T> =>
  found.catch((error: unknown) => {
    throw error instanceof PosternError && error.code === 'not_found'
      ? new UsageError(`There is no project ${projectId}.`)
      : error
  })

const states: Record<string, string> = {
  ready: 'ready to send',
  deferred: 'deferred, waiting for a retry',
  scheduled: 'scheduled for later',
  leased: 'being sent by a worker',
  awaiting: 'submitted to the provider, not confirmed',
}

const reasons: Record<QueueOverview['lanes'][number]['waits_for'][number], string> = {
  operator_hold: 'held by the operator',
  project_lock: 'project locked',
  project_hold: 'project held',
  project_pace: 'project paced',
  subscription: 'no active subscription',
}

function overviewText({ holds, states: counts, lanes }: QueueOverview): string {
  const held = holds.map(
    ({ scope, held_at }) =>
      `HELD since ${held_at}: ${scope === 'all' ? 'all mail' : `mail to provider ${scope}`}.`,
  )
  if (counts.length === 0) return [...held, 'The queue is empty.'].join('\n')
  const totals = counts.map(
    ({ state, mails, oldest_due_at }) =>
      `  ${String(mails).padStart(9)} ${states[state] ?? state} (oldest due ${oldest_due_at})`,
  )
  const rows = lanes.map((lane) => {
    const { ready, deferred, scheduled, leased, awaiting, waits_for } = lane
    const sum = ready + deferred + scheduled + leased + awaiting
    const why = waits_for.map((one) => reasons[one]).join(', ')
    return `  ${String(sum).padStart(9)} project ${lane.project_id} (${lane.project_name}), provider ${lane.provider}${why ? `: ${why}` : ''}`
  })
  return [...held, 'Messages by state:', ...totals, '', 'Messages by project, largest first:', ...rows].join(
    '\n',
  )
}

/** Mail that was handed off to an MTA, with the queue id that the MTA assigned. */
function handedOverText({ count, mails }: HandedOver): string {
  const sum = `Handed over to an MTA in the last ${handedOverDays} days, awaiting a delivery report: ${countText(count)}.`
  if (mails.length === 0) return sum
  const hint = count > mails.length ? ` Showing the newest ${mails.length}; use --limit for more.` : ''
  return [
    `${sum}${hint}`,
    "To hold or release mail that is still in Postfix's queue, run `postsuper -h <id>` or `postsuper -H <id>`:",
    ...mails.map(
      ({ queue_id, host, project_id, message_id, handed_over_at }) =>
        `  ${queue_id}  ${host ?? '-'}  ${handed_over_at}  project ${project_id}, message ${message_id}`,
    ),
  ].join('\n')
}
