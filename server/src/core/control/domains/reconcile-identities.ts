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
  type Unsettled,
} from './identities.sql.ts'
import { dkimAliasRecord, type WantedRecord } from './records.ts'

/**
 * Makes a provider have what the identities say: a name that a living identity has is registered, one that only
 * retiring identities have is deregistered. Several identities can be one and the same thing there (a domain renamed
 * away and back, two projects that want one name), so this is decided by name, never by the single identity.
 *
 * No transaction is open while the provider is spoken with. A lease, dated by the database, keeps everybody else away
 * from the name meanwhile; what was decided is looked at again before it is written down, and decided anew if an edit
 * came between. A process may die at any point: every call can be repeated, and whoever comes after the lease has
 * ended begins again.
 *
 * The lease is longer than the calls can last, and who finds that too much of it has gone by makes no call any more.
 *
 * Each lease has a number, larger than those before it. A worker whose lease has run out and was given to another writes
 * nothing of what it did: the other one has decided since. The one exception is a deregistration that came late: what the
 * other one has registered since is then gone at the provider, and is to be registered again.
 */
export interface ReconcileDeps {
  db: Db
  mailOf: (projectId: number) => Db
  providers: { service: IdentityProvider; ses: IdentityProvider | undefined }
  log: Logger
}

const leaseSeconds = 60
/** A call ends within 10 s, and a registration can take two. */
const lastCallAfterMs = 30_000
/** Mail that was accepted under an identity still goes out under it. */
const retryWhileMailWaitsSeconds = 300
/** Where mail is, it is not known yet that they retire, or nobody answers. */
const retryWhileUnknownSeconds = 5
const firstRetrySeconds = 5
const maxRetrySeconds = 3600
/** More edits than that between two calls, and it waits for the next minute. */
const maxRounds = 10

export async function reconcileIdentity(deps: ReconcileDeps, identityId: number): Promise<void> {
  const key = await deps.db.read((tx) => findKey(tx, identityId))
  if (!key) return
  for (let round = 0; round < maxRounds; round++) {
    const mail = await mailUnder(deps, key)
    const claimedAt = performance.now()
    const claim = await deps.db.transaction((tx) => claimKey(tx, key, mail))
    if (claim === undefined) return
    const mayCall = () => performance.now() - claimedAt < lastCallAfterMs
    if (await settleOnce(deps, key, claim, mayCall)) return
  }
}

/** More is refused by SES as too many requests. */
const atOnce = 4

/** What a minute's round finds due, until told to stop: calls that were lost, and providers that failed. */
export async function reconcileDue(deps: ReconcileDeps, limit: number, signal?: AbortSignal): Promise<void> {
  const due = (await deps.db.read((tx) => listDue(tx, limit))).values()
  const settleSome = async () => {
    for (const id of due) {
      if (signal?.aborted) return
      // It stays due; the others must not suffer for it.
      await reconcileIdentity(deps, id).catch((error: unknown) =>
        deps.log.error({ err: error, identity: id }, 'an identity could not be settled'),
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, settleSome))
}

const notSetUp = 'This installation is not set up for the provider any more.'

/** What the provider has to be told about a name, by all the identities that have it. */
type Call = 'register' | 'deregister' | 'none'

function callFor(identities: readonly Unsettled[]): Call {
  const living = identities.filter(isLiving)
  if (living.length === 0) return 'deregister'
  return living.some(({ state }) => state !== 'registered') ? 'register' : 'none'
}

interface Claim {
  call: Call
  leaseNo: number
}

/** Undefined when there is nothing to do, or when somebody is at it. */
async function claimKey(tx: Tx, key: IdentityKey, mail: MailUnder): Promise<Claim | undefined> {
  const all = await lockByKey(tx, key)
  const isSettled = all.every(({ state }) => state === 'registered')
  if (isSettled || all.some(({ is_leased }) => is_leased)) return undefined
  const call = callFor(all)
  if (call === 'deregister' && idsOf(all).some((id) => mail.get(id) !== 'none')) {
    const isWaiting = idsOf(all).some((id) => mail.get(id) === 'waits')
    await postpone(tx, idsOf(all), isWaiting ? retryWhileMailWaitsSeconds : retryWhileUnknownSeconds)
    return undefined
  }
  return { call, leaseNo: await lease(tx, idsOf(all), leaseSeconds) }
}

/** False when the decision was overtaken by an edit. */
async function settleOnce(
  deps: ReconcileDeps,
  key: IdentityKey,
  claim: Claim,
  mayCall: () => boolean,
): Promise<boolean> {
  const { db, providers, log } = deps
  const { call } = claim
  try {
    const provider = providers[key.provider]
    // An identity in another account or region is another one, and may live there while it is to go here.
    if (!provider || !isSameAccount(provider.place, key))
      throw new ProviderFailure(notSetUp, { isLasting: true })
    if (!mayCall()) return false
    const registration = call === 'register' ? await provider.register(key.name) : undefined
    if (call === 'deregister') await provider.deregister(key.name)
    for (;;) {
      // Asked anew: an edit may have come meanwhile.
      const mail = await mailUnder(deps, key)
      const isWritten = await db.transaction((tx) => writeDown(tx, key, claim, { registration, mail }))
      if (isWritten !== undefined) return isWritten
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    log.warn({ err: error, domain: key.name, provider: key.provider }, 'a provider failed; tried again later')
    await db.transaction((tx) => noteFailure(tx, key, claim, error))
    return true
  }
}

async function noteFailure(
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

/** False when the decision was overtaken by an edit; undefined when one came between two locks, to be tried again. */
async function writeDown(
  tx: Tx,
  key: IdentityKey,
  { call: made, leaseNo }: Claim,
  { registration, mail }: { registration: Registration | undefined; mail: MailUnder },
): Promise<boolean | undefined> {
  const domains = await lockDomainsOf(tx, key)
  const all = await lockByKey(tx, key)
  if (all.some((one) => isLiving(one) && !domains.includes(one.domain_id ?? 0))) return undefined
  const [registered, others] = partition(all, ({ state }) => state === 'registered')
  if (!holdsLease(all, leaseNo)) {
    // Another worker registered it after the lease had run out, or is about to, and what was done here has undone it.
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
  const [waiting, unknown] = partition(undone, (id) => mail.get(id) === 'waits')
  await postpone(tx, waiting, retryWhileMailWaitsSeconds, leaseNo)
  await postpone(tx, unknown, retryWhileUnknownSeconds, leaseNo)
  await markRetired(tx, done, leaseNo)
  await deleteKeys(tx, done)
  return true
}

/** All of them have the same tokens there, and new ones if the provider had lost it. */
async function writeRegistration(
  tx: Tx,
  living: readonly Unsettled[],
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

const isLiving = ({ retiring_at }: Unsettled): boolean => retiring_at === null
const partition = <T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] => [
  all.filter(test),
  all.filter((one) => !test(one)),
]
const idsOf = (identities: readonly Unsettled[]): number[] => identities.map(({ id }) => id)

/** Of identities that retire; what is not in it is not known. */
type MailUnder = ReadonlyMap<number, 'waits' | 'none'>

/**
 * Whether mail waits under those that retire. Nothing is accepted under an identity once it is known to retire where
 * mail is accepted, and what is being accepted at this very moment is waited for (core/mail/messages). So none stays none,
 * and this can be asked before whatever follows from it: mail may be in a database of its own, for which no transaction
 * waits. That one learns a moment later that an identity retires.
 */
async function mailUnder({ db, mailOf, log }: ReconcileDeps, key: IdentityKey): Promise<MailUnder> {
  const retiring = await db.read((tx) => listRetiring(tx, key))
  const known = new Map<number, 'waits' | 'none'>()
  for (const { id, project_id, name } of retiring) {
    try {
      const found = await mailOf(project_id).read((mail) => mailUnderOne(mail, project_id, id, name))
      if (found) known.set(id, found)
    } catch (error) {
      if (!(error instanceof PosternError && error.code === 'unavailable')) throw error
      log.warn({ err: error, identity: id }, 'whether mail waits under an identity cannot be told now')
    }
  }
  return known
}

async function mailUnderOne(
  mail: ReadTx,
  projectId: number,
  id: number,
  name: string,
): Promise<'waits' | 'none' | undefined> {
  if (!(await isRetiring(mail, projectId, id))) return undefined
  await awaitAcceptance(mail, projectId, name)
  return (await countQueued(mail, projectId, [id], 1)) > 0 ? 'waits' : 'none'
}
