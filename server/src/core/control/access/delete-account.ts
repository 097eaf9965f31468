/**
 * Deletes an account with its memberships. Projects are not deleted with it: the user must delete or hand over the projects
 * that they own first. The user's activity is kept for as long as that of other users, because its rows form a chain.
 */
import type { Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { recordProjectActivity, recordUserActivity } from '../activity/activity.ts'
import type { Browser } from './browser.ts'
import { deleteUser, listMembershipsOf } from './delete-account.sql.ts'
import { entryOf } from './sign-in-records.ts'

const namedAtMost = 10

export async function deleteAccount(
  tx: Tx,
  browser: Browser,
  user: { id: number; email: string; role: string },
): Promise<void> {
  if (user.role === 'admin') {
    throw new PosternError(
      'in_use',
      'Administrators cannot delete their account. Another administrator must change your role to "user" first.',
    )
  }
  const memberships = await listMembershipsOf(tx, user.id)
  const owned = memberships.filter(({ role }) => role === 'owner')
  if (owned.length > 0) throw new PosternError('in_use', ownerOf(owned))
  const operation = 'auth.delete-account'
  for (const { member_id: id, project_id, email, role } of memberships) {
    const change = { resource: 'member', id, before: { email, user_id: user.id, role }, after: null }
    await recordProjectActivity(tx, project_id, entryOf(browser, operation, user, change))
  }
  const change = { resource: 'account', id: user.id, before: null, after: null }
  await recordUserActivity(tx, user.id, entryOf(browser, operation, user, change))
  if (!(await deleteUser(tx, user.id))) {
    throw new PosternError(
      'in_use',
      'Your account wrote notes or made changes as an administrator, which the installation keeps. Ask its operator to disable the account.',
    )
  }
}

function ownerOf(owned: readonly { project_id: number; project_name: string }[]): string {
  const names = owned
    .slice(0, namedAtMost)
    .map(({ project_id, project_name }) => `${project_name} (${project_id})`)
  const more = owned.length - names.length
  const list = more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ')
  return `You own projects: ${list}. Delete them, or ask the operator to transfer them, before you delete your account.`
}
