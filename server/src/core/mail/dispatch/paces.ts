import { sql } from 'kysely'

// How many recipients a paced project can hand over now: the generic cell rate algorithm on mail.paces.next_at, in
// database time. The burst is what the pace allows in 30 seconds. A project with a pace of 600 per hour therefore hands
// over at most 605 recipients in any hour, and at most 15 in any minute, whatever its number of lanes and workers.
//
// A claim counts, whether or not it succeeds. A worker that crashes after a claim makes the project slower, never faster.

/** Between two recipients, as a condition on `restriction`. */
export const paceInterval = sql<string>`(interval '1 hour' / restriction.pace_per_hour)`

const burst = sql<number>`greatest(1, restriction.pace_per_hour / 120)`

/** Recipients that can be claimed now. An expression on `restriction` and `paces`, whose row may be missing. */
export const allowance = sql<number>`
  (${burst} - ceil(extract(epoch from greatest(paces.next_at - postern.now(), interval '0'))
                   / extract(epoch from ${paceInterval})))::int`.$castTo<number>()
