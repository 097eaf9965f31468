import { type RawBuilder, sql } from 'kysely'
import { minVolume, penalties, type WeekOfMail } from './score.ts'

/** `scoreOf` as an expression, from the same table of penalties and with the same operations in the same order. */
export function scoreSql(week: Record<keyof WeekOfMail, RawBuilder<unknown>>): RawBuilder<number> {
  const { sent, delivered, bounced, failed } = week
  const total = sql`greatest(${sent}, ${delivered} + ${bounced} + ${failed})::float8`
  const points = (Object.keys(penalties) as (keyof typeof penalties)[]).map((kind) => {
    const { from, to, maxPoints, leastVolume } = penalties[kind]
    const rate = sql`${week[kind]} / greatest(${total}, ${sql.lit(leastVolume)})`
    return sql`${sql.lit(maxPoints)} * least(1, greatest(0, (${rate} - ${sql.lit(from)}) / ${sql.lit(to - from)}))`
  })
  return sql<number>`
    case when ${total} < ${sql.lit(minVolume)} then 100
         else greatest(0, floor(100 - ${sql.join(points, sql` - `)} + 0.5)) end`
}
