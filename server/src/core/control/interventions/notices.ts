import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainText } from '../../shared/text.ts'
import { find, insertAppeal, listByProject, listPublicRows, type NoticeRow } from './notices.sql.ts'
import { maxAppealCharacters, type Notice, type PublicIntervention } from './wire.ts'

/** The interventions in force as the project's members see them: without reasons and names of administrators. */
export const listPublicInForce = async (
  tx: ReadTx,
  projectId: number,
): Promise<Static<typeof PublicIntervention>[]> =>
  (await listPublicRows(tx, projectId)).map(({ created_at, expires_at, ...row }) => ({
    ...row,
    expires_at: expires_at?.toISOString() ?? null,
    created_at: created_at.toISOString(),
  }))

/** All interventions of the project, as its members see them. */
export const listNotices = listByProject

export const noticeView = (row: NoticeRow): Static<typeof Notice> => ({
  id: row.id,
  kind: row.kind,
  public_note: row.public_note,
  pace_per_hour: row.pace_per_hour,
  expires_at: row.expires_at?.toISOString() ?? null,
  ended_at: row.ended_at?.toISOString() ?? null,
  appeal:
    row.appeal === null || row.appealed_at === null
      ? null
      : { text: row.appeal, created_at: row.appealed_at.toISOString() },
  created_at: row.created_at.toISOString(),
})

export async function findNotice(tx: ReadTx, projectId: number, id: number): Promise<NoticeRow> {
  const row = await find(tx, projectId, id)
  if (!row) throw new PosternError('not_found', `There is no notice ${id} in project ${projectId}.`)
  return row
}

/** The caller holds the project's lock, so the intervention cannot end in the meantime. */
export async function appeal(
  tx: Tx,
  projectId: number,
  { id, ended_at }: NoticeRow,
  { userId, text }: { userId: number; text: string },
): Promise<NoticeRow> {
  const plain = plainText(text, 'text', maxAppealCharacters)
  if (ended_at !== null) {
    throw new PosternError('already_ended', `The intervention ended at ${ended_at.toISOString()}.`)
  }
  if (!(await insertAppeal(tx, projectId, { id, userId, text: plain }))) {
    throw new PosternError('already_exists', 'A member of the project has already appealed.')
  }
  return findNotice(tx, projectId, id)
}
