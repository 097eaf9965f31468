import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { type Caps, countAll, type DailyLimits } from '../../control/caps/caps.ts'
import { missingProject, planInForce } from '../../control/projects/projects.ts'
import { Timestamp } from '../../shared/wire.ts'
import { countManual } from '../suppressions/suppressions.ts'
import { findDays, findDaysWithin, findHours, findLimits, findPeriods } from './usage.sql.ts'

export { findDaysWithin }

/** A project's usage relative to its limits, and its daily counts for recent days. */
const period = (name: string) =>
  Type.Object(
    {
      starts_on: Type.String({ format: 'date', description: 'UTC.' }),
      accepted: Type.Integer({ description: 'Recipients that count against the quota.' }),
      limit: Type.Integer({ description: `The current plan's quota, in recipients per ${name}.` }),
    },
    { additionalProperties: false },
  )
const count = Type.Integer()
const Outcomes = {
  ...{ sent: count, delivered: count, deferred: count, bounced: count },
  ...{ failed: count, complained: count, suppressed: count },
}

const Limit = Type.Object(
  { name: Type.String({ description: 'For example `max_endpoints`.' }), used: count, allowed: count },
  { additionalProperties: false },
)

export const Usage = Type.Object(
  {
    day: period('UTC day'),
    month: period('calendar month (UTC)'),
    limits: Type.Array(Limit, {
      description:
        "The project's usage of each limit. Limits are set by the current plan or by the installation.",
    }),
    days: Type.Array(
      Type.Object(
        {
          day: Type.String({ format: 'date', description: 'UTC.' }),
          accepted: count,
          ...Outcomes,
        },
        { additionalProperties: false },
      ),
      {
        description:
          'Recipients per day: the last 30 days (UTC), today first, including days without mail. `deferred` counts every temporary failure.',
      },
    ),
    hours: Type.Array(Type.Object({ starts_at: Timestamp, ...Outcomes }, { additionalProperties: false }), {
      description:
        'Recipients per hour: the last 24 hours, the current one first, including hours without mail. `deferred` counts every temporary failure.',
    }),
  },
  { title: 'Usage', additionalProperties: false },
)

const shownDays = 30
const shownHours = 24

/** The part that is read from the project's mail database. */
export type MailUsage = Omit<Static<typeof Usage>, 'limits'> & { suppressions: number; daily: DailyLimits }

export async function findMailUsage(tx: ReadTx, projectId: number, caps: Caps): Promise<MailUsage> {
  const limits = await findLimits(tx, projectId)
  if (!limits) throw missingProject(projectId)
  const { day, month, daily } = await findPeriods(tx, projectId)
  return {
    day: { ...day, limit: limits.day },
    month: { ...month, limit: limits.month },
    days: await findDays(tx, projectId, shownDays),
    hours: (await findHours(tx, projectId, shownHours)).map(({ starts_at, ...outcomes }) => ({
      ...{ starts_at: starts_at.toISOString(), ...outcomes },
    })),
    suppressions: await countManual(tx, projectId, caps.max_suppressions + 1),
    daily,
  }
}

/** `tx` is a transaction on the control database. */
export async function showUsage(
  tx: ReadTx,
  projectId: number,
  caps: Caps,
  { day, month, days, hours, suppressions, daily }: MailUsage,
): Promise<Static<typeof Usage>> {
  const { max_domains, max_users } = await planInForce(tx, projectId)
  const used = { ...(await countAll(tx, projectId)), max_suppressions: suppressions, ...daily }
  const allowed = { ...caps, max_domains, max_users }
  const limits = (Object.keys(used) as (keyof typeof used)[]).map((name) => ({
    ...{ name, used: used[name], allowed: allowed[name] },
  }))
  return { day, month, limits, days, hours }
}
