import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../platform/db/db.ts'
import { missingProject } from '../projects/projects.ts'
import { findDays, findLimits, findPeriods } from './usage.sql.ts'

/** What a project has used of its plan, and what became of its mail in the last days. */
const Period = Type.Object(
  { starts_on: Type.String({ format: 'date' }), accepted: Type.Integer(), limit: Type.Integer() },
  { additionalProperties: false },
)
const count = Type.Integer()

export const Usage = Type.Object(
  {
    day: Period,
    month: Period,
    days: Type.Array(
      Type.Object(
        {
          day: Type.String({ format: 'date', description: 'UTC.' }),
          accepted: count,
          sent: count,
          delivered: count,
          deferred: count,
          bounced: count,
          failed: count,
          complained: count,
          suppressed: count,
        },
        { additionalProperties: false },
      ),
      { description: 'The last 30 days, today first; days without mail are there, too.' },
    ),
  },
  { title: 'Usage', additionalProperties: false },
)

const shownDays = 30

/** In the mail plane. */
export async function showUsage(tx: ReadTx, projectId: number): Promise<Static<typeof Usage>> {
  const limits = await findLimits(tx, projectId)
  if (!limits) throw missingProject(projectId)
  const { day, month } = await findPeriods(tx, projectId)
  return {
    day: { ...day, limit: limits.day },
    month: { ...month, limit: limits.month },
    days: await findDays(tx, projectId, shownDays),
  }
}
