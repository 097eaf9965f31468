import { PosternError } from '../../platform/errors.ts'
import type { Facts, UsageRow } from './acceptance.sql.ts'

/**
 * The mails that a project may still have accepted today and this month. The rows behind it are locked, so nobody else
 * takes from them before we commit: a quota is never overshot, not even by one.
 */
export class Quota {
  readonly #used: { day: number; month: number }
  readonly #limits: { day: number; month: number }
  readonly #now: Date
  /** Taken here, to be added to the rows. */
  taken = 0

  constructor(rows: readonly UsageRow[], facts: Facts) {
    const used = (period: string) => rows.find((row) => row.period === period)?.accepted ?? 0
    this.#used = { day: used('day'), month: used('month') }
    this.#limits = { day: facts.max_mails_per_day, month: facts.max_mails_per_month }
    this.#now = facts.now
  }

  /** All of a mail's recipients or none. Undefined: they fit, and are taken. */
  take(mails: number): PosternError | undefined {
    for (const period of ['day', 'month'] as const) {
      const limit = this.#limits[period]
      const free = Math.max(0, limit - this.#used[period] - this.taken)
      if (mails > free) return exceeded(period, mails, free, limit, this.#now)
    }
    this.taken += mails
    return undefined
  }
}

function exceeded(
  period: 'day' | 'month',
  mails: number,
  free: number,
  limit: number,
  now: Date,
): PosternError {
  const next =
    period === 'day'
      ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)
      : Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  return new PosternError(
    'quota_exceeded',
    `The plan allows ${limit} mails a ${period}, of which ${free} are left, and this needs ${mails}. ` +
      `The next ${period} begins at ${new Date(next).toISOString()}.`,
    { retryAfterSeconds: Math.max(1, Math.ceil((next - now.getTime()) / 1000)) },
  )
}
