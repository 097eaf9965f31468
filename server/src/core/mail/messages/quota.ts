import { PosternError } from '../../../platform/errors.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import type { Facts, Taken, UsageRow } from './acceptance.sql.ts'

/**
 * What a project may still have accepted today and this month. In acceptance the rows behind it are locked, so nobody else
 * takes from them before we commit: a quota is never overshot, not even by one.
 */
export class Quota {
  readonly #used: { day: number; month: number; bytes: number }
  readonly #limits: { day: number; month: number; bytes: number }
  readonly #now: Date
  /** Taken here, to be added to the rows. */
  readonly taken: Taken = { mails: 0, bytes: 0, inboundBytes: 0, forwards: 0 }

  constructor(
    rows: readonly Pick<UsageRow, 'period' | 'accepted' | 'stored_bytes'>[],
    facts: Pick<Facts, 'max_mails_per_day' | 'max_mails_per_month' | 'now'>,
    { max_bytes_per_day }: ByteLimits,
  ) {
    const used = (period: string) => rows.find((row) => row.period === period)
    this.#used = {
      day: used('day')?.accepted ?? 0,
      month: used('month')?.accepted ?? 0,
      bytes: used('day')?.stored_bytes ?? 0,
    }
    this.#limits = {
      day: facts.max_mails_per_day,
      month: facts.max_mails_per_month,
      bytes: max_bytes_per_day,
    }
    this.#now = facts.now
  }

  /** All of a mail's recipients or none. Undefined: they fit, and are taken. */
  take(mails: number, bytes: number): PosternError | undefined {
    for (const period of ['day', 'month'] as const) {
      const limit = this.#limits[period]
      const free = Math.max(0, limit - this.#used[period] - this.taken.mails)
      if (mails > free) {
        const left = `of which ${free} are left, and this needs ${mails}`
        return exceeded(`The plan allows ${limit} mails a ${period}, ${left}.`, period, this.#now)
      }
    }
    const free = this.#limits.bytes - this.#used.bytes - this.taken.bytes
    if (bytes > free) return bytesExceeded('max_bytes_per_day', this.#limits.bytes, free, bytes, this.#now)
    this.taken.mails += mails
    this.taken.bytes += bytes
    return undefined
  }
}

export const bytesExceeded = (
  name: keyof ByteLimits,
  limit: number,
  free: number,
  bytes: number,
  now: Date,
): PosternError =>
  exceeded(
    `This installation lets a project store ${limit} bytes a day (${name}), of which ${Math.max(0, free)} are left, and this needs ${bytes}.`,
    'day',
    now,
  )

function exceeded(why: string, period: 'day' | 'month', now: Date): PosternError {
  const next =
    period === 'day'
      ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)
      : Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  return new PosternError(
    'quota_exceeded',
    `${why} The next ${period} begins at ${new Date(next).toISOString()}.`,
    { retryAfterSeconds: Math.max(1, Math.ceil((next - now.getTime()) / 1000)) },
  )
}

export const forwardsExceeded = (limit: number, free: number, forwards: number, now: Date): PosternError =>
  exceeded(
    `This installation lets a project forward ${limit} mails a day (max_forwards_per_day), of which ${Math.max(0, free)} are left, and this needs ${forwards}.`,
    'day',
    now,
  )

/** Stands for the rows of a recipient: those of the message, its events and its attempts. */
const recipientBytes = 1024

/** What a mail takes of the quota of bytes. */
export const storedBytes = (
  mail: { content: Buffer; metadata: Record<string, string> },
  recipients: number,
  hasBody: boolean,
): number =>
  recipients * recipientBytes +
  Buffer.byteLength(JSON.stringify(mail.metadata)) +
  (hasBody ? mail.content.length : 0)

/** The same of a mail that came in: `kept` are its octets, and what is told of it to endpoints. */
export const inboundBytes = (recipients: number, kept: number): number => recipients * recipientBytes + kept
