import { randomUUIDv7 } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Context } from '../context/context.ts'
import { recordAudit, shell } from '../core/control/audit/record.ts'
import {
  type HoldScope,
  holdDispatch,
  holdScopes,
  releaseDispatch,
} from '../core/control/holds/dispatch-holds.ts'
import { holdQueue, releaseQueue } from '../core/control/holds/project-holds.ts'
import { lockProject } from '../core/control/projects/projects.ts'
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

export const queue = command('queue', {
  async look({ project, limit, json }) {
    const projectId = project === undefined ? undefined : projectOf(project)
    const atMost = limitOf(limit)
    await withContext(async (context) => {
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
      const hasChanged = await move(context, scope, true, reasonOf(reason))
      const said = hasChanged ? `Held: ${scope.name}.` : `It is held already: ${scope.name}.`
      // It is held by now, whether its cell answers or not.
      const handedOver = await handedOverIn(context, scope.projectId, atMost)
      print(
        json,
        { scope: scope.name, is_held: true, has_changed: hasChanged, handed_over: handedOver },
        () =>
          `${said} What is leaving at this moment goes on.\n\n${handedOver ? handedOverText(handedOver) : notKnown}`,
      )
    })
  },
  async release({ reason, json, ...where }) {
    const scope = scopeOf(where)
    const hasChanged = await withContext((context) => move(context, scope, false, reasonOf(reason)))
    print(json, { scope: scope.name, is_held: false, has_changed: hasChanged }, () =>
      hasChanged ? `Released: ${scope.name}.` : `It was not held: ${scope.name}.`,
    )
  },
})

const lanesAtMost = 20
const notKnown =
  'What was handed over before cannot be told now: its database does not answer, or mail is in cells.'

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

/** Where the mail of a project is, or that of this machine's cell. */
function mailDbOf({ cells, home }: Context, projectId: number | undefined): Db {
  const cell = projectId === undefined ? home : cells.of(projectId)
  if (!cell) throw new UsageError('Mail is in cells: say --project, or which cell you mean by POSTERN_CELL.')
  return cell.admin
}

interface Scope {
  name: string
  projectId: number | undefined
  brake: HoldScope
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
    throw new UsageError('Say what is meant by one of --all, --project and --provider.')
  }
  if (project !== undefined)
    return { name: `project ${project}`, projectId: projectOf(project), brake: 'all' }
  const brake = all ? 'all' : holdScopes.find((known) => known === provider && known !== 'all')
  if (brake === undefined) throw new UsageError(`--provider takes service or ses, not "${provider}".`)
  return { name: all ? 'all mail' : `mail that goes by ${brake}`, projectId: undefined, brake }
}

function projectOf(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new UsageError(`--project takes the id of a project, not "${text}".`)
  return Number(text)
}

function limitOf(text = '100'): number {
  if (!/^\d{1,5}$/.test(text)) throw new UsageError(`--limit takes a number up to 99999, not "${text}".`)
  return Number(text)
}

/** The act and its audit row in one transaction, all of it in control. False when nothing had to be changed. */
async function move({ db }: Context, scope: Scope, isHeld: boolean, reason: string): Promise<boolean> {
  return db.admin.transaction(async (tx) => {
    const hasChanged = await change(tx, scope, isHeld)
    if (!hasChanged) return false
    await recordAudit(tx, {
      actor: shell(`postern, as ${userInfo().username}`),
      requestId: randomUUIDv7(),
      operation: isHeld ? 'queue.hold' : 'queue.release',
      projectId: scope.projectId ?? null,
      change: {
        resource: 'queue',
        id: scope.projectId ?? scope.brake,
        before: { is_held: !isHeld },
        after: { is_held: isHeld },
      },
      related: [],
      reason,
      limitException: null,
      subject: null,
    })
    return true
  })
}

async function change(tx: Tx, { projectId, brake }: Scope, isHeld: boolean): Promise<boolean> {
  if (projectId === undefined) return isHeld ? holdDispatch(tx, brake) : releaseDispatch(tx, brake)
  await lockProject(tx, projectId).catch((error: unknown) => {
    throw error instanceof PosternError && error.code === 'not_found'
      ? new UsageError(`There is no project ${projectId}.`)
      : error
  })
  return isHeld ? holdQueue(tx, projectId) : releaseQueue(tx, projectId)
}

const states: Record<string, string> = {
  ready: 'wait for their turn',
  deferred: 'wait to be tried again',
  scheduled: 'wait for their time',
  leased: 'are in the hands of a worker',
  awaiting: "wait for their provider's word",
}

const reasons: Record<QueueOverview['lanes'][number]['waits_for'][number], string> = {
  brake: 'held by the operator',
  lock: 'the project is locked',
  hold: 'the project is held',
  subscription: 'no subscription is in force',
}

function overviewText({ brakes, states: counts, lanes }: QueueOverview): string {
  const held = brakes.map(
    ({ scope, held_at }) =>
      `HELD since ${held_at}: ${scope === 'all' ? 'all mail' : `mail that goes by ${scope}`}.`,
  )
  if (counts.length === 0) return [...held, 'The queue is empty.'].join('\n')
  const totals = counts.map(
    ({ state, mails, oldest_due_at }) =>
      `  ${String(mails).padStart(9)} ${states[state] ?? state}; the oldest is of ${oldest_due_at}`,
  )
  const rows = lanes.map((lane) => {
    const { ready, deferred, scheduled, leased, awaiting, waits_for } = lane
    const sum = ready + deferred + scheduled + leased + awaiting
    const why = waits_for.map((one) => reasons[one]).join(', ')
    return `  ${String(sum).padStart(9)} project ${lane.project_id} (${lane.project_name}) by ${lane.provider}${why ? `: ${why}` : ''}`
  })
  return [...held, 'Mails that', ...totals, '', 'By project, those with most first:', ...rows].join('\n')
}

/** Under the names that the MTA gave them, which its operator looks for. */
function handedOverText({ count, mails }: HandedOver): string {
  const sum = `Handed to an MTA in the last ${handedOverDays} days, and not heard of since: ${countText(count)}.`
  if (mails.length === 0) return sum
  const hint = count > mails.length ? ` Here are the newest ${mails.length}; --limit shows more.` : ''
  return [
    `${sum}${hint}`,
    'What is still in its queue, Postfix holds with `postsuper -h <id>` and releases with `postsuper -H <id>`:',
    ...mails.map(
      ({ queue_id, host, project_id, message_id, handed_over_at }) =>
        `  ${queue_id}  ${host ?? '-'}  ${handed_over_at}  project ${project_id}, message ${message_id}`,
    ),
  ].join('\n')
}
