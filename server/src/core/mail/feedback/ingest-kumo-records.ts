import { type KumoLogRecord, readKumoLogRecord } from '../../../formats/kumo-log-record.ts'
import { PosternError } from '../../../platform/errors.ts'
import { classifyKumoRecord } from './classify.ts'
import { reportCount } from './feedback.ts'
import { digestOf, type FeedbackDeps } from './ingest-report.ts'
import { decodeReturnPath, type VerpKeys, type VerpToken } from './match-bounce.ts'

/**
 * Ingests the log records of one request; the caller has authenticated KumoMTA. The signed return path identifies the
 * message. Records about other mail, records that do not concern delivery, and malformed records are counted and
 * ignored: if they were rejected, KumoMTA would retry them until they expire.
 *
 * All records are submitted at once, so that they share few transactions. Resolves after all commits. Throws
 * `unavailable` if KumoMTA has to post the records again; those that were already applied are then duplicates.
 */
export async function ingestKumoRecords(deps: FeedbackDeps, records: readonly unknown[]): Promise<void> {
  const results = await Promise.allSettled(records.map((record) => ingest(deps, record)))
  const malformed = results.filter((result) => result.status === 'fulfilled' && result.value === 'malformed')
  if (malformed.length > 0) {
    deps.log.warn({ records: records.length, malformed: malformed.length }, 'KumoMTA log records malformed')
  }
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  if (errors.length === 0) return
  throw new PosternError('unavailable', 'Some log records were not stored. Send all of them again.', {
    // An unexpected error is more useful in the log than an unavailable database.
    cause: errors.find((error) => !(error instanceof PosternError)) ?? errors[0],
    retryAfterSeconds: 1,
  })
}

async function ingest({ keys, feedback }: FeedbackDeps, value: unknown): Promise<'malformed' | undefined> {
  const record = readKumoLogRecord(value)
  const mail = record && reportedMail(keys, record)
  const classified = record && classifyKumoRecord(record)
  if (!mail || !classified) {
    reportCount.add({ kind: 'none', outcome: 'ignored' })
    return record ? undefined : 'malformed'
  }
  await feedback.apply({ ...mail, ...classified, digest: digestOf(mail, Buffer.from(record.identity)) })
  return undefined
}

function reportedMail(keys: VerpKeys, { returnPaths }: KumoLogRecord): VerpToken | undefined {
  for (const path of returnPaths) {
    const mail = decodeReturnPath(keys, path)
    if (mail) return mail
  }
  return undefined
}
