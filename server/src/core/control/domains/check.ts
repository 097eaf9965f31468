import type { Db, Tx } from '../../../platform/db/db.ts'
import type { Lookup, Resolver } from '../../../platform/net/dns.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import {
  type IdentityProvider,
  type IdentityReport,
  isSameAccount,
  ProviderFailure,
} from '../../../providers/sending-identities.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import {
  type CheckedRecord,
  claimDue,
  listRecords,
  lockName,
  lockSubject,
  type Subject,
  writeOutcome,
  writeStatuses,
} from './check.sql.ts'
import { nextStep, type WarningDays, warningDue } from './check-schedule.ts'
import { activatePending, listKeys, retireActive } from './dkim-keys.sql.ts'
import { insertNotice } from './dns-notices.sql.ts'
import { deleteRecords, verifiedHolder } from './domains.sql.ts'
import { evaluateRecords, findingOf, type ProviderStatus, statusAfter } from './evaluate-records.ts'
import { markLost } from './identities.sql.ts'
import { lookupRecords } from './lookup-records.ts'
import { dkimKeyName } from './records.ts'

/**
 * A look at a domain's DNS records, and at what its provider says. It is taken outside of any transaction; what it
 * found is written down only if the domain is still the one that was looked at.
 */
export interface CheckDeps {
  db: Db
  dns: Resolver
  providers: { service: IdentityProvider; ses: IdentityProvider | undefined }
  log: Logger
}

/** Longer than the look-ups and the provider's answer can take together. */
const leaseSeconds = 120

/** One that somebody asked for, if it is due. */
export async function checkDomain(deps: CheckDeps, projectId: number, id: number): Promise<void> {
  const only = { projectId, id }
  const subjects = await deps.db.transaction((tx) => claimDue(tx, { limit: 1, leaseSeconds, only }))
  for (const subject of subjects) await check(deps, subject)
}

const atOnce = 20

/** All that are due, some at a time, until told to stop. */
export async function checkDue(deps: CheckDeps, limit: number, signal?: AbortSignal): Promise<number> {
  let checked = 0
  while (checked < limit && !signal?.aborted) {
    const subjects = await deps.db.transaction((tx) => claimDue(tx, { limit: atOnce, leaseSeconds }))
    await Promise.all(subjects.map((subject) => check(deps, subject)))
    checked += subjects.length
    if (subjects.length < atOnce) break
  }
  return checked
}

async function check({ db, dns, providers, log }: CheckDeps, subject: Subject): Promise<void> {
  const { project_id, id, name } = subject
  try {
    const records = await db.read((tx) => listRecords(tx, project_id, id))
    const [observations, report] = await Promise.all([
      lookupRecords(dns, records),
      askProvider(providers[subject.mta_provider], subject, log),
    ])
    const warning = await db.transaction((tx) => writeDown(tx, subject, observations, report))
    if (warning !== undefined) {
      metrics.domainsUnanswered.add({ days: `${warning}` })
      log.warn(
        { domain: name, project: project_id, days: warning },
        'DNS gives no answer for a verified domain',
      )
    }
  } catch (error) {
    // The lease ends, and it is looked at again; the others must not suffer for it.
    log.error({ err: error, domain: name, project: project_id }, 'a domain could not be checked')
  }
}

type Report = IdentityReport | { failure: string }

async function askProvider(
  provider: IdentityProvider | undefined,
  { name, identity_state, account, region }: Subject,
  log: Logger,
): Promise<Report> {
  if (!provider || !isSameAccount(provider.place, { account, region }))
    return { failure: 'This installation is not set up for the provider any more.' }
  if (identity_state !== 'registered') return { failure: 'The provider has not registered the domain yet.' }
  try {
    return await provider.look(name)
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    // What it says is for the operator: it may name their account.
    log.warn({ err: error, domain: name }, 'a provider could not be asked about a domain')
    return { failure: 'The provider could not be asked; it is tried again.' }
  }
}

/** Not there any more, or made anew by somebody else, with other keys than the records ask for. */
function isLost(report: Report, observations: readonly Seen[]): boolean {
  if ('failure' in report) return false
  if (!report.isRegistered) return true
  const shown = observations
    .filter(({ record }) => record.purpose === 'dkim' && record.type === 'CNAME')
    .map(({ record }) => record.value)
  const wanted = report.dkimTokens.map((token) => `${token}.${report.dkimZone ?? ''}`)
  return wanted.length > 0 && shown.sort().join() !== wanted.sort().join()
}

function wordOf(report: Report): ProviderStatus {
  if ('failure' in report) return { result: 'unknown', complaint: report.failure }
  if (report.isVerified) return { result: 'complete', complaint: null }
  return { result: 'incomplete', complaint: report.detail ?? 'The provider has not verified the domain yet.' }
}

interface Seen {
  record: CheckedRecord
  lookup: Lookup
}

async function writeDown(
  tx: Tx,
  seen: Subject,
  observations: readonly Seen[],
  report: Report,
): Promise<WarningDays | undefined> {
  const subject = await lockSubject(tx, seen.project_id, seen.id)
  // Edited, rotated or deleted meanwhile: what was seen is about something that is no more.
  if (subject?.version !== seen.version) return undefined
  const { project_id, name, identity_id } = subject
  const statuses = observations.map((observation) => ({
    id: observation.record.id,
    name: observation.record.name,
    status: statusAfter(findingOf(observation), observation.record.status),
  }))
  await writeStatuses(tx, project_id, statuses)
  if (isLost(report, observations)) await markLost(tx, [identity_id])

  const seenNames = new Set(
    statuses.filter(({ status }) => status === 'verified').map((record) => record.name),
  )
  const { spareName, isKeyWaiting } = await turnKeys(tx, subject, seenNames)
  const { result, complaint, isUnanswered } = evaluateRecords(observations, spareName, wordOf(report))
  const isClaimed =
    result === 'complete' && subject.status !== 'verified' && (await isHeldByAnother(tx, subject))
  const judged = isClaimed
    ? { result: 'incomplete' as const, complaint: `Another project holds ${name} as verified.` }
    : { result, complaint }
  const unansweredForMs = isUnanswered ? subject.unanswered_ms : null
  const standing = {
    status: subject.status,
    failingForMs: subject.failing_ms,
    checksFailed: subject.checks_failed,
    unansweredForMs,
    isKeyWaiting,
  }
  const step = nextStep(standing, judged.result)
  const warnedDays = isUnanswered ? subject.unanswered_warned_days : 0
  const warning = subject.status === 'verified' ? warningDue(unansweredForMs, warnedDays) : undefined
  await writeOutcome(tx, seen, { ...judged, ...step, isUnanswered, warnedDays: warning ?? warnedDays })
  if (warning !== undefined) await insertNotice(tx, subject, warning)
  if (step.status !== subject.status) await tellOf(tx, subject, step.status, judged.complaint)
  return warning
}

async function tellOf(
  tx: Tx,
  { project_id, id, name, mta_provider }: Subject,
  status: Subject['status'],
  complaint: string | null,
): Promise<void> {
  // Only an edit makes it wait again, and whoever edits knows.
  if (status === 'pending') return
  const data = { id, name, status, mta_provider, last_check_error: complaint }
  await publishToMail(tx, project_id, 'event', { type: `domain.${status}`, data })
}

/** One at a time decides about a name, or two could find it free. */
async function isHeldByAnother(tx: Tx, { name, project_id }: Subject): Promise<boolean> {
  await lockName(tx, name)
  return (await verifiedHolder(tx, name, project_id)) !== undefined
}

interface Keys {
  /** The record that nobody needs: of a key that waits beside the one in use, or has just been taken out of it. */
  spareName?: string
  isKeyWaiting: boolean
}

/** A key that DNS shows takes over from the one before it, whose record is then asked for no more. */
async function turnKeys(
  tx: Tx,
  { project_id, id, identity_id, name }: Subject,
  seenNames: ReadonlySet<string>,
): Promise<Keys> {
  const keys = await listKeys(tx, project_id, identity_id)
  const active = keys.find(({ state }) => state === 'active')
  const pending = keys.find(({ state }) => state === 'pending')
  if (!pending) return { isKeyWaiting: false }
  const pendingName = dkimKeyName(name, pending.selector)
  if (!seenNames.has(pendingName)) {
    return active ? { spareName: pendingName, isKeyWaiting: true } : { isKeyWaiting: false }
  }
  await retireActive(tx, project_id, identity_id)
  await activatePending(tx, project_id, identity_id)
  if (!active) return { isKeyWaiting: false }
  const retiredName = dkimKeyName(name, active.selector)
  await deleteRecords(tx, project_id, id, retiredName)
  return { spareName: retiredName, isKeyWaiting: false }
}
