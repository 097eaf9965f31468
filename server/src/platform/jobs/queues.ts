import type { QueueOptions } from 'pg-boss'

/**
 * Every queue of pg-boss, with what a job of it is told. What has to be done lies in rows of our own, with the time
 * at which it is due; a job is a wake-up call for it, so that a job that is lost, late or run twice does no harm.
 *
 * Mail is not sent through here: pg-boss is first in, first out, and one project's backlog would delay all others.
 */
export interface Payloads {
  /** A provider has to be told of an identity, or asked to forget it. */
  'identities.reconcile': { identity_id: number }
  /** Every minute: those whose call was lost, or whose provider failed. */
  'identities.sweep': Record<string, never>
  /** Somebody asked for a look at a domain's DNS records. */
  'domains.check': { project_id: number; domain_id: number }
  /** Every minute: the domains that are due. */
  'domains.sweep': Record<string, never>
  /** Every minute: mail to the owners of domains whose DNS gives no answer. */
  'domains.notify': Record<string, never>
  /** An administrator wants a scheduled message not to be sent. */
  'messages.cancel': { project_id: number; message_id: string }
  /** Every hour: room for the mail of the coming days, and that of long ago is dropped. */
  'partitions.keep': Record<string, never>
  /** Somebody was invited to a project and is to be told. */
  'invitations.send': { project_id: number; member_id: number }
  /** Every minute: invitations whose mail nobody took. */
  'invitations.sweep': Record<string, never>
  /** Every minute: mail with links to set a new password. */
  'password-resets.sweep': Record<string, never>
  /** Every minute: mail to the owners of endpoints that were switched off. */
  'endpoints.notify': Record<string, never>
  /** Every minute, and when a route is created that forwards: mail to targets that have not confirmed. */
  'forwards.confirm': Record<string, never>
  /** Every minute: signing the audit, forgetting what has had its time. */
  chores: Record<string, never>
}

export type QueueName = keyof Payloads

const hourSeconds = 3600

/** A process that dies leaves its job behind as active; after this long another one may have it. */
const expireInSeconds = 120

const wakeUp: QueueOptions = {
  expireInSeconds,
  retryLimit: 5,
  retryDelay: 2,
  retryBackoff: true,
  deleteAfterSeconds: hourSeconds,
}
/** The next one comes in a minute anyway. */
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
  'domains.notify': everyMinute,
  'messages.cancel': wakeUp,
  'partitions.keep': everyHour,
  'invitations.send': wakeUp,
  'invitations.sweep': everyMinute,
  'password-resets.sweep': everyMinute,
  'endpoints.notify': everyMinute,
  'forwards.confirm': everyMinute,
  chores: everyMinute,
}

/**
 * The queues into which the customers' database role may put jobs; PostgreSQL refuses all others (install.ts). A job that
 * names a project names that of its transaction.
 */
export const customerQueues: readonly QueueName[] = [
  ...(['identities.reconcile', 'domains.check', 'invitations.send', 'forwards.confirm'] as const),
]

/** The schema in which pg-boss keeps its tables. */
export const jobsSchema = 'jobs'
