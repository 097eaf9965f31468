import type { Static } from 'typebox'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { timeRangeOf } from '../../shared/time-range.ts'
import { type ProviderKind, providerKinds } from './count-events.sql.ts'
import { findCountedUntil, findCounts, listProviderTotals, type ProviderCounts } from './figures.sql.ts'
import { otherProvider } from './mailbox-provider.ts'
import { type MailboxProviderFigures, type MailboxProviders, maxRangeDays } from './wire.ts'

export { listProviderTotals, type ProviderCounts }

type Figures = Static<typeof MailboxProviderFigures>

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A project's figures. They are counted by the hour, so the range is extended to whole hours. */
export async function showMailboxProviders(
  tx: ReadTx,
  projectId: number,
  query: { from?: string; to?: string },
): Promise<Static<typeof MailboxProviders>> {
  const range = rangeOf(query, await databaseTime(tx))
  const counted_until = await findCountedUntil(tx)
  return {
    from: range.from.toISOString(),
    to: range.to.toISOString(),
    counted_until: counted_until.toISOString(),
    mailbox_providers: figuresOf(await findCounts(tx, projectId, range)),
  }
}

/** Adds up the counts of several databases. */
export function figuresOf(counts: readonly ProviderCounts[]): Figures[] {
  const sums = new Map<string, Record<ProviderKind, number>>()
  for (const one of counts) {
    const sum = sums.get(one.mailbox_provider)
    if (sum === undefined) sums.set(one.mailbox_provider, { ...one })
    else for (const kind of providerKinds) sum[kind] += one[kind]
  }
  return [...sums]
    .map(([mailbox_provider, sum]) => viewOf(mailbox_provider, sum))
    .toSorted(
      (one, other) =>
        Number(one.mailbox_provider === otherProvider) - Number(other.mailbox_provider === otherProvider) ||
        other.volume - one.volume ||
        one.mailbox_provider.localeCompare(other.mailbox_provider),
    )
}

function viewOf(
  mailbox_provider: string,
  { sent, delivered, deferred, bounced, failed, complained, rejected }: Record<ProviderKind, number>,
): Figures {
  const volume = sent + rejected
  const rateOf = (count: number) => (volume === 0 ? null : (100 * count) / volume)
  return {
    ...{ mailbox_provider, volume, sent, delivered, deferred, bounced, failed, complained },
    delivery_rate: rateOf(delivered),
    deferral_rate: rateOf(deferred),
    bounce_rate: rateOf(bounced),
    failure_rate: rateOf(failed),
    complaint_rate: rateOf(complained),
  }
}

function rangeOf(query: { from?: string; to?: string }, now: Date): { from: Date; to: Date } {
  const { from, to = now } = timeRangeOf(query)
  const end = Math.ceil(to.getTime() / hourMs) * hourMs
  if (from === undefined) return { from: new Date(end - dayMs), to: new Date(end) }
  if (from >= to) throw new PosternError('invalid_parameter', '"from" must be before "to".')
  if (to.getTime() - from.getTime() > maxRangeDays * dayMs) {
    throw new PosternError('invalid_parameter', `The range cannot be longer than ${maxRangeDays} days.`)
  }
  return { from: new Date(Math.floor(from.getTime() / hourMs) * hourMs), to: new Date(end) }
}
