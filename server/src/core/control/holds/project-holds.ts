import Type, { type Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { countCap } from '../../shared/counts.ts'
import { nullable, Timestamp } from '../../shared/wire.ts'
import { type Counts, countMails, deleteHold, findHold, insertHold } from './project-holds.sql.ts'

/**
 * The mail of a project that is still to be handed over, as an administrator sees it. A hold is a row in control that
 * the worker looks at when it claims: nothing in the queue is written, so it takes effect at once, whatever waits.
 */
const count = (of: string) => Type.Integer({ description: `${of}, counted up to ${countCap + 1}.` })

export const ProjectQueue = Type.Object(
  {
    project_id: Type.Integer(),
    is_held: Type.Boolean({
      description: 'By an administrator. Mail of a locked project waits, too, without this.',
    }),
    held_at: nullable(Timestamp),
    waiting: count('Mails that wait for their turn, or to be tried again'),
    scheduled: count('Mails whose time has not come'),
    leaving: count('Mails in the hands of a worker at this moment'),
    awaiting: count(
      'Mails that the provider may have, and has not told of yet; after an hour such a mail has failed',
    ),
  },
  { title: 'ProjectQueue', additionalProperties: false },
)

/** In the mail plane: held is what is held there. */
export const showQueue = async (mail: ReadTx, projectId: number): Promise<Static<typeof ProjectQueue>> =>
  queueView(mail, projectId, await countQueue(mail, projectId))

export type { Counts }

/** In the mail plane: what is there. */
export const countQueue = (mail: ReadTx, projectId: number): Promise<Counts> =>
  countMails(mail, projectId, countCap + 1)

export async function queueView(
  tx: ReadTx,
  projectId: number,
  counts: Counts,
): Promise<Static<typeof ProjectQueue>> {
  const heldAt = await findHold(tx, projectId)
  return {
    project_id: projectId,
    is_held: heldAt !== undefined,
    held_at: heldAt?.toISOString() ?? null,
    ...counts,
  }
}

/** The project must be locked by the caller. False when it is held already. */
export const holdQueue = (tx: Tx, projectId: number): Promise<boolean> => insertHold(tx, projectId)

/** False when it was not held. */
export const releaseQueue = (tx: Tx, projectId: number): Promise<boolean> => deleteHold(tx, projectId)
