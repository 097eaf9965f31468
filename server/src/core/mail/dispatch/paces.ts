import { sql } from 'kysely'

// How many recipients a paced project can hand over now: the generic cell rate algorithm on mail.paces.next_at, in
// database time. The burst is what the pace allows in 30 seconds. A project with a pace of 600 per hour therefore hands
// over at most 605 recipients in any hour, and at most 15 in any minute, whatever its number of lanes and workers.
//
// A claim counts, whether or not it succeeds. A worker that crashes after a claim makes the project slower, never faster.

/** Between two recipients. An expression on `restriction`. */
export const paceInterval = sql<string>`(interval '1 hour' / restriction.pace_per_hour)`

/**
 * At least two from 60 per hour on, so that an idle worker that polls every five seconds loses nothing. Below, a recipient
 * may be a few seconds late.
 */
export const paceBurst = sql<number>`
  (case when restriction.pace_per_hour < 60 then 1 else greatest(2, restriction.pace_per_hour / 120) end)`

/**
 * How far the project is ahead of its pace. What it was ahead of another pace does not count: after a slow one, a faster one
 * would have no effect for up to an hour. An expression on `restriction` and `paces`, whose row may be missing.
 */
export const paceDebt = sql<string>`
  (case when paces.pace_per_hour = restriction.pace_per_hour
        then greatest(paces.next_at - postern.now(), interval '0') else interval '0' end)`

/** Recipients that can be claimed now. */
export const allowance = sql<number>`
  (${paceBurst} - ceil(extract(epoch from ${paceDebt}) / extract(epoch from ${paceInterval})))::int`
