/**
 * A project's queue as administrators see it. A hold is an intervention (core/control/interventions): the worker reads it
 * when it claims messages. No queue row is written, so the hold takes effect immediately, regardless of how many messages
 * are queued.
 */

import Type, { type Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { countCap } from '../../shared/counts.ts'
import { nullable, Timestamp } from '../../shared/wire.ts'
import type { Change } from '../audit/record.ts'
import { releaseGradually } from '../interventions/gradual-release.ts'
import {
  type Decision,
  endInForce,
  imposeForever,
  interventionChange,
  type Lockable,
  type Settled,
} from '../interventions/interventions.ts'
import { countMails, findHold, type QueueCounts } from './project-holds.sql.ts'

const count = (of: string) => Type.Integer({ description: `${of}, counted up to ${countCap + 1}.` })

export const ProjectQueue = Type.Object(
  {
    project_id: Type.Integer(),
    is_held: Type.Boolean({
      description:
        "Whether the queue is held by an administrator. A locked project's mail is held regardless of this field.",
    }),
    held_at: nullable(Timestamp),
    waiting: count('Messages queued for a first attempt or a retry'),
    scheduled: count('Messages scheduled for a later time'),
    leaving: count('Messages that a worker is sending now'),
    awaiting: count('Messages submitted to the provider that have no result yet (they fail after an hour)'),
  },
  { title: 'ProjectQueue', additionalProperties: false },
)

/** Runs in the mail database, with that database's replica of the hold. */
export const showQueue = async (mail: ReadTx, projectId: number): Promise<Static<typeof ProjectQueue>> =>
  queueView(mail, projectId, await countQueue(mail, projectId))

export type { QueueCounts }

/** Runs in the mail database. */
export const countQueue = (mail: ReadTx, projectId: number): Promise<QueueCounts> =>
  countMails(mail, projectId, countCap + 1)

export async function queueView(
  tx: ReadTx,
  projectId: number,
  counts: QueueCounts,
): Promise<Static<typeof ProjectQueue>> {
  const heldAt = await findHold(tx, projectId)
  return {
    project_id: projectId,
    is_held: heldAt !== undefined,
    held_at: heldAt?.toISOString() ?? null,
    ...counts,
  }
}

/**
 * Starts a hold without expiry, unless there already is one. The caller holds the project's lock. Returns the changes for
 * the audit log, none if nothing changed: the queue's, unless another hold was in force, and those of the interventions.
 */
export const holdQueue = (tx: Tx, project: Lockable, decision: Decision): Promise<Change[]> =>
  audited(tx, project, () => imposeForever(tx, project, 'hold', decision))

/** Ends every hold. With `gradually`, also starts a pace that ends when the mail that is ready now is gone. */
export const releaseQueue = (
  tx: Tx,
  project: Lockable,
  gradually?: { perMinute: number; decision: Decision },
): Promise<Change[]> =>
  audited(tx, project, () =>
    gradually
      ? releaseGradually(tx, project, gradually.perMinute, gradually.decision)
      : endInForce(tx, project, 'hold'),
  )

async function audited(tx: Tx, { id }: Lockable, act: () => Promise<Settled>): Promise<Change[]> {
  const before = { is_held: (await findHold(tx, id)) !== undefined }
  const { changes } = await act()
  const after = { is_held: (await findHold(tx, id)) !== undefined }
  return [
    ...(before.is_held === after.is_held ? [] : [{ resource: 'queue', id, before, after }]),
    ...changes.map(interventionChange),
  ]
}
