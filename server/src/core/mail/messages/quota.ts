import { PosternError } from '../../../platform/errors.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import type { Facts, Taken, UsageRow } from './acceptance.sql.ts'

/**
 * A project's remaining quotas for today and this month. Acceptance locks the underlying rows until it
 * commits, so a quota is never exceeded, not even by one message.
 */
export class Quota {
  readonly #used: { day: number; month: number; bytes: number }
  readonly #limits: { day: number; month: number; bytes: number }
  readonly #now: Date
  /** The amounts taken so far, to be added to the rows. */
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

  /** Takes quota for all of a message's recipients or for none. Returns undefined on success. */
  take(mails: number, bytes: number): PosternError | undefined {
    for (const period of ['day', 'month'] as const) {
      const limit = this.#limits[period]
      const free = Math.max(0, limit - this.#used[period] - this.taken.mails)
      if (mails > free) {
        const left = `${free} are left and this message needs ${mails}`
        return exceeded(
          `The plan allows ${limit} messages per ${period}, counted per recipient; ${left}.`,
          period,
          this.#now,
        )
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
    `This installation allows a project ${limit} bytes per day (${name}); ${Math.max(0, free)} are left and this message needs ${bytes}.`,
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
    `This installation allows a project ${limit} forwarded messages per day (max_forwards_per_day); ${Math.max(0, free)} are left and this message needs ${forwards}.`,
    'day',
    now,
  )

/**
 * An estimate of the storage for one recipient's rows: its share of the message, its events and its attempts.
 */
const recipientBytes = 1024

/** The number of bytes that a message counts toward the byte quota. */
export const storedBytes = (
  mail: { content: Buffer; metadata: Record<string, string> },
  recipients: number,
  hasBody: boolean,
): number =>
  recipients * recipientBytes +
  Buffer.byteLength(JSON.stringify(mail.metadata)) +
  (hasBody ? mail.content.length : 0)

/**
 * The same for an inbound message. `kept` is the total size of the message as received and its event data.
 */
export const inboundBytes = (recipients: number, kept: number): number => recipients * recipientBytes + kept
