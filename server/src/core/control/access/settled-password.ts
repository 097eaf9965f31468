import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { deleteChallenges } from './access.sql.ts'
import { deleteSessionWith, findPassword, lockPassword } from './settled-password.sql.ts'

/**
 * Better Auth checks a password and then opens the session, in two transactions. A password that is changed or reset
 * between the two ends the sessions that there are, and not the one that is about to be. So the password is looked at
 * before and after, and a session that was opened with an old one is ended before anybody has its cookie.
 */
export async function withSettledPassword<T extends { body: Record<string, unknown> }>(
  db: Db,
  email: string,
  signIn: () => Promise<T>,
): Promise<T> {
  const before = await db.read((tx) => findPassword(tx, email))
  const answer = await signIn()
  const isSettled = await db.transaction(async (tx) => {
    const now = await lockPassword(tx, email)
    if (now && now.password === before?.password) return true
    const { token } = answer.body
    if (typeof token === 'string') await deleteSessionWith(tx, token)
    if (now) await deleteChallenges(tx, now.user_id)
    return false
  })
  if (!isSettled) throw new PosternError('unauthenticated', 'The email address or the password is wrong.')
  return answer
}
