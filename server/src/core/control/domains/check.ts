/**
 * The domain check: looks up a domain's DNS records, queries its provider, and writes the result. The lookups run outside
 * any transaction. The result is written only if the domain has not been edited since (its version is unchanged).
 */

import type { Db, Tx } from '../../../platform/db/db.ts'
import type { Resolver } from '../../../platform/net/dns.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import {
  type IdentityProvider,
  type IdentityReport,
  isSameAccount,
  ProviderFailure,
} from '../../../providers/sending-identities.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import { addSystemMail } from '../notifications/queued-mail.ts'
import {
  type CheckedDomain,
  type CheckedRecord,
  claimDue,
  listRecords,
  lockCheckedDomain,
  lockName,
  writeOutcome,
  writeStatuses,
} from './check.sql.ts'
import { nextStep, type WarningDays, warningDue } from './check-schedule.ts'
import { cutOverKey } from './dkim-rotation.ts'
import { verifiedHolder } from './domains.sql.ts'
import {
  evaluateRecords,
  findingOf,
  type ProviderStatus,
  type RecordLookup,
  statusAfter,
} from './evaluate-records.ts'
import { markLost } from './identities.sql.ts'
import { lookupRecords } from './lookup-records.ts'

const unansweredDomains = new Counter(
  'postern_domains_unanswered_total',
  'Verified domains whose DNS lookups have failed for 3, 10 or 14 days; after 14 days a domain is no longer verified.',
  { days: ['3', '10', '14'] },
)

export interface CheckDeps {
  db: Db
  dns: Resolver
  providers: { service: IdentityProvider; ses: IdentityProvider | undefined }
  log: Logger
}

/** Longer than the maximum combined duration of the DNS lookups and the provider's response. */
const leaseSeconds = 120

/** Checks one domain if it is due. */
export async function checkDomain(deps: CheckDeps, projectId: number, id: number): Promise<void> {
  const only = { projectId, id }
  const domains = await deps.db.transaction((tx) => claimDue(tx, { limit: 1, leaseSeconds, only }))
  for (const domain of domains) await check(deps, domain)
}

const atOnce = 20

/** Checks all due domains, `atOnce` at a time, until the signal aborts. */
export async function checkDue(deps: CheckDeps, limit: number, signal?: AbortSignal): Promise<number> {
  let checked = 0
  while (checked < limit && !signal?.aborted) {
    const domains = await deps.db.transaction((tx) => claimDue(tx, { limit: atOnce, leaseSeconds }))
    await Promise.all(domains.map((domain) => check(deps, domain)))
    checked += domains.length
    if (domains.length < atOnce) break
  }
  return checked
}

async function check({ db, dns, providers, log }: CheckDeps, domain: CheckedDomain): Promise<void> {
  const { project_id, id, name } = domain
  try {
    const records = await db.read((tx) => listRecords(tx, project_id, id))
    const [lookups, report] = await Promise.all([
      lookupRecords(dns, records),
      askProvider(providers[domain.mta_provider], domain, log),
    ])
    const warning = await db.transaction((tx) => writeResult(tx, domain, lookups, report))
    if (warning !== undefined) {
      unansweredDomains.add({ days: `${warning}` })
      log.warn({ domain: name, project: project_id, days: warning }, 'DNS lookups fail for a verified domain')
    }
  } catch (error) {
    // The lease expires and the domain is checked again. The other domains of the batch are not affected.
    log.error({ err: error, domain: name, project: project_id }, 'domain check failed')
  }
}

type ProviderReport = IdentityReport | { failure: string }

async function askProvider(
  provider: IdentityProvider | undefined,
  { name, identity_state, account, region }: CheckedDomain,
  log: Logger,
): Promise<ProviderReport> {
  if (!provider || !isSameAccount(provider.location, { account, region }))
    return { failure: 'This installation is no longer configured for the provider.' }
  if (identity_state !== 'registered') return { failure: 'The provider has not registered the domain yet.' }
  try {
    return await provider.describe(name)
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    // The provider's own message is only for the operator, because it can name the operator's account.
    log.warn({ err: error, domain: name }, 'failed to query the provider about a domain')
    return { failure: 'The provider could not be reached. The check will be retried.' }
  }
}

/** Whether the identity was deleted at the provider, or recreated there with keys that differ from the records. */
function isLost(report: ProviderReport, lookups: readonly CheckedLookup[]): boolean {
  if ('failure' in report) return false
  if (!report.isRegistered) return true
  const shown = lookups
    .filter(({ record }) => record.purpose === 'dkim' && record.type === 'CNAME')
    .map(({ record }) => record.value)
  const wanted = report.dkimTokens.map((token) => `${token}.${report.dkimZone ?? ''}`)
  return wanted.length > 0 && shown.sort().join() !== wanted.sort().join()
}

function providerStatus(report: ProviderReport): ProviderStatus {
  if ('failure' in report) return { result: 'unknown', complaint: report.failure }
  if (report.isVerified) return { result: 'complete', complaint: null }
  return { result: 'incomplete', complaint: report.detail ?? 'The provider has not verified the domain yet.' }
}

type CheckedLookup = RecordLookup<CheckedRecord>

async function writeResult(
  tx: Tx,
  claimed: CheckedDomain,
  lookups: readonly CheckedLookup[],
  report: ProviderReport,
): Promise<WarningDays | undefined> {
  const domain = await lockCheckedDomain(tx, claimed.project_id, claimed.id)
  // The domain was edited or deleted, or its key was rotated, in the meantime: the lookups were for records that no
  // longer apply.
  if (domain?.version !== claimed.version) return undefined
  const { project_id, name, identity_id } = domain
  const statuses = lookups.map((lookup) => ({
    id: lookup.record.id,
    name: lookup.record.name,
    status: statusAfter(findingOf(lookup), lookup.record.status),
  }))
  await writeStatuses(tx, project_id, statuses)
  if (isLost(report, lookups)) await markLost(tx, [identity_id])

  const verifiedNames = new Set(
    statuses.filter(({ status }) => status === 'verified').map((record) => record.name),
  )
  const { optionalRecordName, isKeyPending } = await cutOverKey(tx, domain, verifiedNames)
  const evaluation = evaluateRecords(lookups, optionalRecordName, providerStatus(report))
  const { isUnanswered } = evaluation
  const isClaimed =
    evaluation.result === 'complete' && domain.status !== 'verified' && (await isHeldByAnother(tx, domain))
  const { result, complaint } = isClaimed
    ? { result: 'incomplete' as const, complaint: `${name} is already verified in another project.` }
    : evaluation
  const unansweredForMs = isUnanswered ? domain.unanswered_ms : null
  const state = {
    status: domain.status,
    failingForMs: domain.failing_ms,
    checksFailed: domain.checks_failed,
    unansweredForMs,
    isKeyPending,
  }
  const step = nextStep(state, result)
  const warnedDays = isUnanswered ? domain.unanswered_warned_days : 0
  const warning = domain.status === 'verified' ? warningDue(unansweredForMs, warnedDays) : undefined
  await writeOutcome(tx, claimed, {
    ...{ result, complaint, ...step },
    ...{ isUnanswered, warnedDays: warning ?? warnedDays },
  })
  if (warning !== undefined) await addSystemMail(tx, 'domain_failing', domain)
  if (step.status !== domain.status) await publishStatus(tx, domain, step.status, complaint)
  return warning
}

async function publishStatus(
  tx: Tx,
  { project_id, id, name, mta_provider }: CheckedDomain,
  status: CheckedDomain['status'],
  complaint: string | null,
): Promise<void> {
  // Only an edit resets a domain to pending, and the user who made the edit already knows.
  if (status === 'pending') return
  const data = { id, name, status, mta_provider, last_check_error: complaint }
  await publishToMail(tx, project_id, 'event', { type: `domain.${status}`, data })
}

/** Serialized by name: otherwise two projects could both find the name unclaimed. */
async function isHeldByAnother(tx: Tx, { name, project_id }: CheckedDomain): Promise<boolean> {
  await lockName(tx, name)
  return (await verifiedHolder(tx, name, project_id)) !== undefined
}
