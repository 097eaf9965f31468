/**
 * Reconciles identities with their provider: a name with a live identity is registered, a name with only retiring
 * identities is deregistered. Several identities can be the same object at the provider (a domain renamed and renamed back,
 * two projects with the same name), so the decision is made per name, never per identity.
 *
 * No transaction is open during a provider call. A lease, dated by the database clock, excludes other workers from the
 * name. The decision is checked again before the result is written, and repeated if an edit happened in between. A process
 * can crash at any point: every call can be repeated, and the next worker starts over after the lease has expired.
 *
 * The lease is longer than the maximum duration of the calls, and a worker whose lease is about to expire makes no further
 * call.
 *
 * Each lease has a higher number than all earlier ones (a fencing token). A worker whose lease expired and was reassigned
 * writes nothing, because the new worker has since made its own decision. The only exception is a late deregistration: it
 * has removed the new worker's registration, so the name must be registered again.
 */

import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import {
  type IdentityProvider,
  isSameAccount,
  ProviderFailure,
  type Registration,
} from '../../../providers/sending-identities.ts'
import { checkNow, countQueued, replaceAliases } from './domains.sql.ts'
import {
  awaitAcceptance,
  deleteKeys,
  findKey,
  holdsLease,
  type IdentityKey,
  isRetiring,
  type LockedIdentity,
  lease,
  listDue,
  listRetiring,
  lockByKey,
  lockDomainsOf,
  markFailed,
  markLost,
  markRegistered,
  markRetired,
  postpone,
  release,
  startAgain,
} from './identities.sql.ts'
import { dkimAliasRecord, type WantedRecord } from './records.ts'

export interface ReconcileDeps {
  db: Db
  mailOf: (projectId: number) => Db
  providers: { service: IdentityProvider; ses: IdentityProvider | undefined }
  log: Logger
}

const leaseSeconds = 60
/** A call takes at most 10 s, and a registration can need two. */
const lastCallAfterMs = 30_000
/** The retry delay while accepted mail is still queued for the identity. */
const retryWhileMailWaitsSeconds = 300
/** The retry delay while the cell is unreachable or has not yet replicated that the identities are retiring. */
const retryWhileUnknownSeconds = 5
const firstRetrySeconds = 5
const maxRetrySeconds = 3600
/** If the decision becomes obsolete this many times in a row because of edits, the next attempt is made a minute later. */
const maxPasses = 10

export async function reconcileIdentity(deps: ReconcileDeps, identityId: number): Promise<void> {
  const key = await deps.db.read((tx) => findKey(tx, identityId))
  if (!key) return
  for (let pass = 0; pass < maxPasses; pass++) {
    const mail = await queuedUnder(deps, key)
    const claimedAt = performance.now()
    const claim = await deps.db.transaction((tx) => claimKey(tx, key, mail))
    if (claim === undefined) return
    const mayCall = () => performance.now() - claimedAt < lastCallAfterMs
    if (await reconcileOnce(deps, key, claim, mayCall)) return
  }
}

/** With more concurrent calls, SES throttles requests. */
const atOnce = 4

/** Reconciles due identities, whose job was lost or whose call failed, until the signal aborts. */
export async function reconcileDue(deps: ReconcileDeps, limit: number, signal?: AbortSignal): Promise<void> {
  const due = (await deps.db.read((tx) => listDue(tx, limit))).values()
  const reconcileNext = async () => {
    for (const id of due) {
      if (signal?.aborted) return
      // The identity stays due. The others are not affected.
      await reconcileIdentity(deps, id).catch((error: unknown) =>
        deps.log.error({ err: error, identity: id }, 'identity reconciliation failed'),
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, reconcileNext))
}

const notSetUp = 'This installation is no longer configured for the provider.'

/** The provider call that a name needs, derived from all its identities. */
type Call = 'register' | 'deregister' | 'none'

function callFor(identities: readonly LockedIdentity[]): Call {
  const live = identities.filter(isLive)
  if (live.length === 0) return 'deregister'
  return live.some(({ state }) => state !== 'registered') ? 'register' : 'none'
}

interface Claim {
  call: Call
  leaseNo: number
}

/** Undefined if there is nothing to do, or if another worker has the lease. */
async function claimKey(tx: Tx, key: IdentityKey, mail: QueuedByIdentity): Promise<Claim | undefined> {
  const all = await lockByKey(tx, key)
  const isDone = all.every(({ state }) => state === 'registered')
  if (isDone || all.some(({ is_leased }) => is_leased)) return undefined
  const call = callFor(all)
  if (call === 'deregister' && idsOf(all).some((id) => mail.get(id) !== 'none')) {
    const isWaiting = idsOf(all).some((id) => mail.get(id) === 'queued')
    await postpone(tx, idsOf(all), isWaiting ? retryWhileMailWaitsSeconds : retryWhileUnknownSeconds)
    return undefined
  }
  return { call, leaseNo: await lease(tx, idsOf(all), leaseSeconds) }
}

/** Returns false if an edit made the decision obsolete. */
async function reconcileOnce(
  deps: ReconcileDeps,
  key: IdentityKey,
  claim: Claim,
  mayCall: () => boolean,
): Promise<boolean> {
  const { db, providers, log } = deps
  const { call } = claim
  try {
    const provider = providers[key.provider]
    // The same name in another account or region is a different identity. It can stay registered there while it is removed
    // here.
    if (!provider || !isSameAccount(provider.location, key))
      throw new ProviderFailure(notSetUp, { isPermanent: true })
    if (!mayCall()) return false
    const registration = call === 'register' ? await provider.register(key.name) : undefined
    if (call === 'deregister') await provider.deregister(key.name)
    for (;;) {
      // Read again: an edit can have happened in the meantime.
      const mail = await queuedUnder(deps, key)
      const isWritten = await db.transaction((tx) => writeResult(tx, key, claim, { registration, mail }))
      if (isWritten !== undefined) return isWritten
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    log.warn(
      { err: error, domain: key.name, provider: key.provider },
      'provider call failed, will be retried',
    )
    await db.transaction((tx) => writeFailure(tx, key, claim, error))
    return true
  }
}

async function writeFailure(
  tx: Tx,
  key: IdentityKey,
  { leaseNo }: Claim,
  { message }: ProviderFailure,
): Promise<void> {
  const all = await lockByKey(tx, key)
  if (!holdsLease(all, leaseNo)) return
  const [registered, unsettled] = partition(all, ({ state }) => state === 'registered')
  await release(tx, idsOf(registered), leaseNo)
  const attempts = Math.max(0, ...unsettled.map(({ attempts }) => attempts))
  await markFailed(
    tx,
    idsOf(unsettled),
    leaseNo,
    message,
    Math.min(maxRetrySeconds, firstRetrySeconds * 2 ** attempts),
  )
}

/** False if an edit made the decision obsolete. Undefined if an edit ran between the two locks: call again. */
async function writeResult(
  tx: Tx,
  key: IdentityKey,
  { call: made, leaseNo }: Claim,
  { registration, mail }: { registration: Registration | undefined; mail: QueuedByIdentity },
): Promise<boolean | undefined> {
  const domains = await lockDomainsOf(tx, key)
  const all = await lockByKey(tx, key)
  if (all.some((one) => isLive(one) && !domains.includes(one.domain_id ?? 0))) return undefined
  const [registered, others] = partition(all, ({ state }) => state === 'registered')
  if (!holdsLease(all, leaseNo)) {
    // Since the lease expired, another worker has registered the name or is about to register it, and this call has
    // deregistered it.
    if (made === 'deregister') await startAgain(tx, idsOf(all.filter(isLive)))
    return false
  }
  const needed = callFor(all)
  if (needed !== made && !(needed === 'none' && made === 'register')) {
    if (made === 'deregister') await markLost(tx, idsOf(registered))
    else await release(tx, idsOf(registered), leaseNo)
    await release(tx, idsOf(others), leaseNo)
    return false
  }
  const [live, retiring] = partition(all, isLive)
  if (registration) await writeRegistration(tx, live, leaseNo, dkimAliases(key.name, registration))
  else await release(tx, idsOf(live), leaseNo)
  const [done, undone] = partition(idsOf(retiring), (id) => mail.get(id) === 'none')
  const [waiting, unknown] = partition(undone, (id) => mail.get(id) === 'queued')
  await postpone(tx, waiting, retryWhileMailWaitsSeconds, leaseNo)
  await postpone(tx, unknown, retryWhileUnknownSeconds, leaseNo)
  await markRetired(tx, done, leaseNo)
  await deleteKeys(tx, done)
  return true
}

/** All identities share the provider's tokens. If the provider no longer had the identity, it has issued new ones. */
async function writeRegistration(
  tx: Tx,
  live: readonly LockedIdentity[],
  leaseNo: number,
  aliases: readonly WantedRecord[],
): Promise<void> {
  await markRegistered(tx, idsOf(live), leaseNo)
  for (const { project_id, domain_id } of live) {
    if (domain_id === null) continue
    await replaceAliases(tx, project_id, domain_id, aliases)
    await checkNow(tx, { project_id, id: domain_id })
  }
}

const dkimAliases = (name: string, { dkimTokens, dkimZone }: Registration): WantedRecord[] =>
  dkimTokens.map((token) => dkimAliasRecord(name, token, dkimZone ?? ''))

const isLive = ({ retiring_at }: LockedIdentity): boolean => retiring_at === null
const partition = <T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] => [
  all.filter(test),
  all.filter((one) => !test(one)),
]
const idsOf = (identities: readonly LockedIdentity[]): number[] => identities.map(({ id }) => id)

/** For retiring identities. Missing identities are unknown. */
type QueuedByIdentity = ReadonlyMap<number, 'queued' | 'none'>

/**
 * Whether mail is queued for retiring identities. Once the mail database has replicated that an identity is retiring, no
 * mail is accepted for that identity, and this read waits for acceptances in progress (core/mail/messages). Therefore `none`
 * is final and can be read before the transaction that relies on it. If mail is in a different database, the retirement
 * arrives there a moment later.
 */
async function queuedUnder({ db, mailOf, log }: ReconcileDeps, key: IdentityKey): Promise<QueuedByIdentity> {
  const retiring = await db.read((tx) => listRetiring(tx, key))
  const known = new Map<number, 'queued' | 'none'>()
  for (const { id, project_id, name } of retiring) {
    try {
      const found = await mailOf(project_id).read((mail) => queuedUnderOne(mail, project_id, id, name))
      if (found) known.set(id, found)
    } catch (error) {
      if (!(error instanceof PosternError && error.code === 'unavailable')) throw error
      log.warn({ err: error, identity: id }, 'cannot determine whether mail is queued under an identity')
    }
  }
  return known
}

async function queuedUnderOne(
  mail: ReadTx,
  projectId: number,
  id: number,
  name: string,
): Promise<'queued' | 'none' | undefined> {
  if (!(await isRetiring(mail, projectId, id))) return undefined
  await awaitAcceptance(mail, projectId, name)
  return (await countQueued(mail, projectId, [id], 1)) > 0 ? 'queued' : 'none'
}
