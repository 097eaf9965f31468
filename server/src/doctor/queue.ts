import { listDispatchHolds } from '../core/control/holds/global-holds.ts'
import { type Check, type DoctorContext, type Finding, failure, ok, unlessFound, warning } from './check.ts'
import { durationText } from './duration.ts'
import { type Delays, findDelays, listHeldProjects, partitionedDaysAhead, sinceChores } from './queue.sql.ts'

/** The control database contains no mail if mail is stored in cells. */
const inCells = ({ settings }: DoctorContext): Finding[] | undefined =>
  settings.cells.length === 0
    ? undefined
    : [
        {
          level: 'skipped',
          finding: 'Skipped: mail is stored in cells, each with its own metrics.',
          remedy: null,
        },
      ]

/** Checks that workers are running and that no queue is delayed. */
export const queueChecks: Check[] = [
  {
    name: 'worker',
    needs: 'tables',
    async run({ db }) {
      const seconds = await db.readOne(sinceChores)
      if (seconds !== null && seconds < lateSeconds) return [ok('A worker is running.')]
      const since = seconds === null ? 'recently' : `for ${durationText(seconds)}`
      return [
        failure(
          `No worker has been running ${since}: no mail is sent, and no webhook is delivered.`,
          'Start `postern worker` or `postern all`; if one is running, read its log.',
        ),
      ]
    },
  },
  {
    name: 'queue',
    needs: 'tables',
    run: async (context) => inCells(context) ?? delays(await context.db.readOne(findDelays)),
  },
  {
    name: 'queue.partitions',
    needs: 'tables',
    run: async (context) => inCells(context) ?? [partitions(await context.db.readOne(partitionedDaysAhead))],
  },
  {
    name: 'queue.holds',
    needs: 'tables',
    async run({ db }) {
      const projects = await db.readOne(listHeldProjects)
      const holds = await db.readOne(listDispatchHolds)
      const remedy = '`postern queue show` lists what is waiting; `postern queue release` removes a hold.'
      return unlessFound(
        [
          ...holds.map(({ scope, held_at }) =>
            warning(
              `${scope === 'all' ? 'All mail' : `Mail to provider ${scope}`} has been held since ${held_at}; held mail fails after 7 days.`,
              remedy,
            ),
          ),
          ...projects.map(({ id, name }) =>
            warning(`Mail from project ${id} (${name}) is held; held mail fails after 7 days.`, remedy),
          ),
        ],
        'Nothing is held.',
      )
    },
  },
]

/** A worker runs its chores once a minute. */
const lateSeconds = 5 * 60
/**
 * A delay of at least this long is a failure; a shorter one is a warning, because a busy MTA delays mail for a while.
 */
const failureSeconds = 3600

const kinds: { kind: keyof Delays; what: string; remedy: string }[] = [
  {
    kind: 'ready',
    what: 'Mail that is ready to send has been waiting',
    remedy:
      'See the findings about the worker and the MTA; `postern queue show` lists what is waiting and why.',
  },
  {
    kind: 'overdue',
    what: 'Deferred or scheduled mail has been overdue',
    remedy: 'Start `postern worker`, or read its log.',
  },
  {
    kind: 'leased',
    what: 'Mail leased by a worker that died has been waiting',
    remedy: 'Start `postern worker`: it reclaims the mail within seconds.',
  },
  {
    kind: 'webhooks',
    what: 'A webhook delivery has been overdue',
    remedy: 'Start `postern worker`, or more workers.',
  },
  {
    kind: 'control_outbox',
    what: 'The outbox relay to mail (control.outbox) has been behind',
    remedy: 'Start `postern worker`; if one is running, its log names the row that cannot be applied.',
  },
  {
    kind: 'mail_outbox',
    what: 'The outbox relay to control (mail.outbox) has been behind',
    remedy: 'Start `postern worker`; if one is running, its log names the row that cannot be applied.',
  },
  {
    kind: 'identities',
    what: 'A change to a sending identity at its provider has been pending',
    remedy: "Start `postern worker`, or read the provider's response in control.identities.last_error.",
  },
  {
    kind: 'domains',
    what: 'A DNS check of a domain has been overdue',
    remedy: 'Start `postern worker`, or more workers.',
  },
]

const delays = (found: Delays): Finding[] =>
  unlessFound(
    kinds.map(({ kind, what, remedy }) => {
      const seconds = found[kind]
      if (seconds === null || seconds < lateSeconds) return undefined
      return (seconds >= failureSeconds ? failure : warning)(`${what} for ${durationText(seconds)}.`, remedy)
    }),
    'No queue is late.',
  )

/** The worker creates partitions 14 days ahead, once an hour. */
const aheadDays = 7

function partitions(days: number): Finding {
  const remedy =
    'Start `postern worker`, which creates partitions every hour, or search its log for "partitions".'
  if (days < 1)
    return failure('The mail tables have no partition for tomorrow: mail will be rejected with 503.', remedy)
  if (days < aheadDays) return warning(`The mail tables have partitions for ${days} more days.`, remedy)
  return ok(`The mail tables have partitions for ${days} more days.`)
}
