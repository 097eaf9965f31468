import type { QueueOptions } from 'pg-boss'

/**
 * The pg-boss queues and the payloads of their jobs. The work itself is stored in tables with a due time. A job is only a
 * wake-up call, so a lost, late or duplicate job does no harm.
 *
 * Mail does not use these queues: pg-boss is first in, first out, and one project's backlog would delay all others.
 */
export interface Payloads {
  /** Registers an identity with its provider or removes it. */
  'identities.reconcile': { identity_id: number }
  /** Every minute: reconciles identities whose job was lost or whose provider failed. */
  'identities.sweep': Record<string, never>
  /** Checks a domain's DNS records on request. */
  'domains.check': { project_id: number; domain_id: number }
  /** Every minute: checks domains whose DNS check is due. */
  'domains.sweep': Record<string, never>
  /** An administrator canceled a scheduled message. */
  'messages.cancel': { project_id: number; message_id: string }
  /** Every hour: creates the partitions for the coming days and drops expired ones. */
  'partitions.keep': Record<string, never>
  /** Every minute, and after an invitation: sends the system mail that is due. */
  'system-mail.send': Record<string, never>
  /** Every minute, and after a request: makes the files of evidence. */
  'evidence.make': Record<string, never>
  /** Evaluates the policies. */
  'policies.evaluate': Record<string, never>
  /**
   * Every minute, and after a forwarding route is created: adds confirmation requests to unconfirmed
   * targets to the system mail.
   */
  'forwards.confirm': Record<string, never>
  /** Every minute: signs the audit log and purges expired rows. */
  chores: Record<string, never>
}

export type QueueName = keyof Payloads

const hourSeconds = 3600

/** After a crash, a job stays active for this long before another worker can run it. */
const expireInSeconds = 120

const wakeUp: QueueOptions = {
  expireInSeconds,
  retryLimit: 5,
  retryDelay: 2,
  retryBackoff: true,
  deleteAfterSeconds: hourSeconds,
}
/** Without retries: the next job follows within a minute. */
const everyMinute: QueueOptions = {
  expireInSeconds,
  retryLimit: 0,
  retentionSeconds: hourSeconds,
  deleteAfterSeconds: hourSeconds,
}

const everyHour: QueueOptions = { ...everyMinute, retryLimit: 5, retryDelay: 60 }

export const queues: Record<QueueName, QueueOptions> = {
  'identities.reconcile': wakeUp,
  'identities.sweep': everyMinute,
  'domains.check': wakeUp,
  'domains.sweep': everyMinute,
  'messages.cancel': wakeUp,
  'partitions.keep': everyHour,
  'system-mail.send': everyMinute,
  'evidence.make': everyMinute,
  'policies.evaluate': everyMinute,
  'forwards.confirm': everyMinute,
  chores: everyMinute,
}

/**
 * The queues to which the customers' database role can send jobs. Row-level security rejects all others (install.ts). If
 * the payload has a project, it must be the transaction's project.
 */
export const customerQueues: readonly QueueName[] = [
  ...(['identities.reconcile', 'domains.check', 'system-mail.send', 'forwards.confirm'] as const),
]

/** The schema of pg-boss. */
export const jobsSchema = 'jobs'
