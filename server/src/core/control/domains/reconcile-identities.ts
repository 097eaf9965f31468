/**
 * Reconciles identities with their provider: a name that a living identity has is registered, a name that only retiring
 * identities have is deregistered. Several identities can be one and the same thing at the provider (a domain renamed
 * away and back, two projects that want one name), so the decision is made by name, never by a single identity.
 *
 * No transaction is open during a provider call. A lease, dated by the database, keeps other workers away from the name.
 * The decision is checked again before the result is written, and made again if an edit came between. A process may die
 * at any point: every call can be repeated, and the next worker after the lease has expired starts over.
 *
 * The lease is longer than the calls can last, and a worker that has used too much of it makes no further call.
 *
 * Each lease has a number larger than those before it (a fencing token). A worker whose lease expired and was given to
 * another writes nothing: the other one has decided since. The one exception is a late deregistration: it removed what the
 * other worker has registered since, which must be registered again.
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
/** A call ends within 10 s, and a registration can take two. */
const lastCallAfterMs = 30_000
/** Mail accepted under an identity is still sent under it. */
const retryWhileMailWaitsSeconds = 300
/** The cell does not know yet that they retire, or does not answer. */
const retryWhileUnknownSeconds = 5
const firstRetrySeconds = 5
const maxRetrySeconds = 3600
/** After this many edits between two calls, it waits for the next minute. */
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

/** SES throttles more than this. */
const atOnce = 4

/** Reconciles identities that are due, until the signal aborts: jobs that were lost, and providers that failed. */
export async function reconcileDue(deps: ReconcileDeps, limit: number, signal?: AbortSignal): Promise<void> {
  const due = (await deps.db.read((tx) => listDue(tx, limit))).values()
  const reconcileNext = async () => {
    for (const id of due) {
      if (signal?.aborted) return
      // It stays due; the others go on.
      await reconcileIdentity(deps, id).catch((error: unknown) =>
        deps.log.error({ err: error, identity: id }, 'an identity could not be reconciled'),
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, reconcileNext))
}

const notSetUp = 'This installation is no longer configured for the provider.'

/** The provider call that a name needs, by all the identities that have it. */
type Call = 'register' | 'deregister' | 'none'

function callFor(identities: readonly LockedIdentity[]): Call {
  const living = identities.filter(isLiving)
  if (living.length === 0) return 'deregister'
  return living.some(({ state }) => state !== 'registered') ? 'register' : 'none'
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

/** False if an edit overtook the decision. */
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
    // The same name in another account or region is another identity, and may stay there while it is removed here.
    if (!provider || !isSameAccount(provider.location, key))
      throw new ProviderFailure(notSetUp, { isPermanent: true })
    if (!mayCall()) return false
    const registration = call === 'register' ? await provider.register(key.name) : undefined
    if (call === 'deregister') await provider.deregister(key.name)
    for (;;) {
      // Read again: an edit may have happened meanwhile.
      const mail = await queuedUnder(deps, key)
      const isWritten = await db.transaction((tx) => writeResult(tx, key, claim, { registration, mail }))
      if (isWritten !== undefined) return isWritten
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    log.warn(
      { err: error, domain: key.name, provider: key.provider },
      'a provider call failed; it will be retried',
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

/** False if an edit overtook the decision; undefined if one came between the two locks, to be tried again. */
async function writeResult(
  tx: Tx,
  key: IdentityKey,
  { call: made, leaseNo }: Claim,
  { registration, mail }: { registration: Registration | undefined; mail: QueuedByIdentity },
): Promise<boolean | undefined> {
  const domains = await lockDomainsOf(tx, key)
  const all = await lockByKey(tx, key)
  if (all.some((one) => isLiving(one) && !domains.includes(one.domain_id ?? 0))) return undefined
  const [registered, others] = partition(all, ({ state }) => state === 'registered')
  if (!holdsLease(all, leaseNo)) {
    // Another worker registered the name after the lease expired, or is about to, and this deregistration undid it.
    if (made === 'deregister') await startAgain(tx, idsOf(all.filter(isLiving)))
    return false
  }
  const needed = callFor(all)
  if (needed !== made && !(needed === 'none' && made === 'register')) {
    if (made === 'deregister') await markLost(tx, idsOf(registered))
    else await release(tx, idsOf(registered), leaseNo)
    await release(tx, idsOf(others), leaseNo)
    return false
  }
  const [living, retiring] = partition(all, isLiving)
  if (registration) await writeRegistration(tx, living, leaseNo, dkimAliases(key.name, registration))
  else await release(tx, idsOf(living), leaseNo)
  const [done, undone] = partition(idsOf(retiring), (id) => mail.get(id) === 'none')
  const [waiting, unknown] = partition(undone, (id) => mail.get(id) === 'queued')
  await postpone(tx, waiting, retryWhileMailWaitsSeconds, leaseNo)
  await postpone(tx, unknown, retryWhileUnknownSeconds, leaseNo)
  await markRetired(tx, done, leaseNo)
  await deleteKeys(tx, done)
  return true
}

/** All of them share the provider's tokens, which are new if the provider had lost the identity. */
async function writeRegistration(
  tx: Tx,
  living: readonly LockedIdentity[],
  leaseNo: number,
  aliases: readonly WantedRecord[],
): Promise<void> {
  await markRegistered(tx, idsOf(living), leaseNo)
  for (const { project_id, domain_id } of living) {
    if (domain_id === null) continue
    await replaceAliases(tx, project_id, domain_id, aliases)
    await checkNow(tx, { project_id, id: domain_id })
  }
}

const dkimAliases = (name: string, { dkimTokens, dkimZone }: Registration): WantedRecord[] =>
  dkimTokens.map((token) => dkimAliasRecord(name, token, dkimZone ?? ''))

const isLiving = ({ retiring_at }: LockedIdentity): boolean => retiring_at === null
const partition = <T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] => [
  all.filter(test),
  all.filter((one) => !test(one)),
]
const idsOf = (identities: readonly LockedIdentity[]): number[] => identities.map(({ id }) => id)

/** For retiring identities; unknown for those that are missing. */
type QueuedByIdentity = ReadonlyMap<number, 'queued' | 'none'>

/**
 * Whether mail is queued under retiring identities. Once the mail side knows that an identity retires, it accepts nothing
 * under it, and acceptances in progress are waited for (core/mail/messages). So `none` stays `none`, and can be read
 * before the transaction that relies on it: mail may be in another database, which learns of the retirement a moment
 * later.
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
