import { listDispatchHolds } from '../core/control/holds/dispatch-holds.ts'
import { type Check, type DoctorContext, type Finding, failure, ok, unlessFound, warning } from './check.ts'
import { durationText } from './duration.ts'
import { countHolds, type Delays, findDelays, partitionedDaysAhead, sinceChores } from './queue.sql.ts'

/** Control's database does not know how mail stands in others. */
const inCells = ({ settings }: DoctorContext): Finding[] | undefined =>
  settings.cells.length === 0
    ? undefined
    : [
        {
          level: 'skipped',
          finding: 'Not looked at: mail is in cells, each with metrics of its own.',
          remedy: null,
        },
      ]

/** Whether work that lies in rows is done. */
export const queueChecks: Check[] = [
  {
    name: 'worker',
    needs: 'tables',
    async look({ db }) {
      const seconds = await db.readOne(sinceChores)
      if (seconds !== null && seconds < lateSeconds) return [ok('A worker is at work.')]
      const since = seconds === null ? 'lately' : `for ${durationText(seconds)}`
      return [
        failure(
          `No worker has worked ${since}: no mail is sent, no endpoint is told anything.`,
          'Start `postern worker` or `postern all`; if one runs, its log says what is wrong.',
        ),
      ]
    },
  },
  {
    name: 'queue',
    needs: 'tables',
    look: async (ground) => inCells(ground) ?? delays(await ground.db.readOne(findDelays)),
  },
  {
    name: 'queue.partitions',
    needs: 'tables',
    look: async (ground) => inCells(ground) ?? [partitions(await ground.db.readOne(partitionedDaysAhead))],
  },
  {
    name: 'queue.holds',
    needs: 'tables',
    async look({ db }) {
      const held = await db.readOne(countHolds)
      const brakes = await db.readOne(listDispatchHolds)
      const remedy = '`postern queue look` tells what waits, and `postern queue release` lets it go on.'
      return unlessFound(
        [
          ...brakes.map(({ scope, held_at }) =>
            warning(
              `${scope === 'all' ? 'All mail' : `Mail that goes by ${scope}`} is held since ${held_at}; what is held for 7 days fails.`,
              remedy,
            ),
          ),
          held === 0
            ? undefined
            : warning(
                `The mail of ${held === 1 ? 'one project' : `${held} projects`} is held; what is held for 7 days fails.`,
                remedy,
              ),
        ],
        'Nothing is held.',
      )
    },
  },
]

/** The worker comes by once a minute at the latest. */
const lateSeconds = 5 * 60
/** Mail that has its turn is late sooner than it is hopeless: a full MTA makes it wait for a while. */
const hopelessSeconds = 3600

const kinds: { kind: keyof Delays; what: string; remedy: string }[] = [
  {
    kind: 'ready',
    what: 'Mail that could be sent has waited',
    remedy:
      'Look at the findings about the worker and the MTA; `postern queue look` says what waits for what.',
  },
  {
    kind: 'overdue',
    what: 'Mail that was put off or scheduled has been due',
    remedy: 'Start `postern worker`, or look at its log.',
  },
  {
    kind: 'leased',
    what: 'Mail that a worker left behind when it died has waited',
    remedy: 'Start `postern worker`: another takes it back within seconds.',
  },
  {
    kind: 'webhooks',
    what: 'An endpoint is due to be told something, and has waited',
    remedy: 'Start `postern worker`, or more of them.',
  },
  {
    kind: 'control_outbox',
    what: 'What control has to tell mail (control.outbox) has waited',
    remedy: 'Start `postern worker`; if one runs, its log names the row that cannot be applied.',
  },
  {
    kind: 'mail_outbox',
    what: 'What mail has to tell control (mail.outbox) has waited',
    remedy: 'Start `postern worker`; if one runs, its log names the row that cannot be applied.',
  },
  {
    kind: 'identities',
    what: 'A provider is to be told of an identity, and that has waited',
    remedy: 'Start `postern worker`, or look at last_error in control.identities for what the provider says.',
  },
  {
    kind: 'domains',
    what: 'A look at the DNS records of a domain has been due',
    remedy: 'Start `postern worker`, or more of them.',
  },
]

const delays = (found: Delays): Finding[] =>
  unlessFound(
    kinds.map(({ kind, what, remedy }) => {
      const seconds = found[kind]
      if (seconds === null || seconds < lateSeconds) return undefined
      const isHopeless = seconds >= hopelessSeconds
      return (isHopeless ? failure : warning)(`${what} for ${durationText(seconds)}.`, remedy)
    }),
    'Nothing waits for longer than it should.',
  )

/** The worker makes them 14 days ahead, once an hour. */
const aheadDays = 7

function partitions(days: number): Finding {
  const remedy = 'Start `postern worker`, which makes them every hour, or look at its log for "partitions".'
  if (days < 1)
    return failure('The tables of mail have no room for tomorrow: mail will be refused with 503.', remedy)
  if (days < aheadDays) return warning(`The tables of mail have room for ${days} days more.`, remedy)
  return ok(`The tables of mail have room for ${days} days more.`)
}
