/**
 * Closes the race between the password check and the creation of the session. Better Auth checks the password and creates
 * the session in two transactions. A password change or reset between the two revokes the existing sessions, but not the one
 * that is about to be created. Therefore the password hash is read before the sign-in and again after it. If it has changed,
 * the new session is deleted before its cookie is sent.
 */
import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { deleteChallenges } from './access.sql.ts'
import { deleteSessionByToken, findPassword, lockPassword } from './password-race.sql.ts'

export async function withUnchangedPassword<T extends { body: Record<string, unknown> }>(
  db: Db,
  email: string,
  signIn: () => Promise<T>,
  /** Runs the statement that `signIn` runs only for an existing user, so that the work is the same for every address. */
  standIn: () => Promise<void>,
): Promise<T> {
  const before = await db.read((tx) => findPassword(tx, email))
  if (!before) await standIn()
  const result = await signIn()
  const isUnchanged = await db.transaction(async (tx) => {
    const now = await lockPassword(tx, email)
    if (now && now.password === before?.password) return true
    const { token } = result.body
    if (typeof token === 'string') await deleteSessionByToken(tx, token)
    if (now) await deleteChallenges(tx, now.user_id)
    return false
  })
  if (!isUnchanged) throw new PosternError('unauthenticated', 'The email address or the password is wrong.')
  return result
}
