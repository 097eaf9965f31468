/**
 * Creates administrators and resets the credentials of users from the server's command line. An administrator's password and
 * second factor are set in the same run, so signing in with only a password is never possible. An interrupted run leaves an
 * administrator whose credentials were never printed; `reset` issues new ones.
 */
import { randomInt, randomUUIDv7 } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { UsageError } from '../../../platform/errors.ts'
import { plainReason } from '../../shared/text.ts'
import { type ActivityEntry, recordUserActivity, system } from '../activity/activity.ts'
import { recordAudit, shell } from '../audit/record.ts'
import type { ShellOperation } from '../audit/unattended-operations.ts'
import { type Rights, rightsOf } from '../users/wire.ts'
import {
  confirmTotp,
  deleteCredentials,
  deleteSecondFactor,
  endSessions,
  findSignInUser,
  insertAdministrator,
  linkLogin,
  lockSignInUser,
  makeAdministrator,
  unlinkLogin,
} from './access.sql.ts'
import type { UserOperation } from './account-changes.ts'
import type { BetterAuth } from './better-auth.ts'
import { issueReset } from './password-reset.ts'

export interface AdministratorCredentials {
  userId: number
  password: string
  totpUri: string
  backupCodes: string[]
}

export interface AdministratorDeps {
  auth: BetterAuth
  adminDb: Db
  identityDb: Db
  /** The `--reason` option, for the audit log. */
  reason?: string | undefined
}

export async function createAdministrator(
  deps: AdministratorDeps,
  email: string,
  name: string,
  rights?: Rights,
): Promise<AdministratorCredentials> {
  return issueCredentials(deps, await grantAdministrator(deps, email, name, rights), email)
}

/** Creates the user without credentials. The user cannot sign in yet. */
export async function grantAdministrator(
  deps: Pick<AdministratorDeps, 'adminDb' | 'reason'>,
  email: string,
  name: string,
  rights: Rights = 'full',
): Promise<number> {
  const user = await deps.adminDb.transaction(async (tx) => {
    const inserted = await insertAdministrator(tx, email, name, rights)
    if (inserted) {
      await record(tx, deps, 'users.create', { id: inserted.id, email, name }, null, administrator(rights))
    }
    return inserted
  })
  if (!user) {
    throw new UsageError(
      `A user with the address ${email} already exists. To grant the admin role and issue new credentials, run: postern admin reset --email ${email}`,
    )
  }
  return user.id
}

/**
 * Sets a new password and second factor, revokes all sessions and tokens, activates the user and grants the admin role. An
 * administrator keeps their rights unless others are given: new credentials alone must not raise them.
 */
export async function resetAdministrator(
  deps: AdministratorDeps,
  email: string,
  given?: Rights,
): Promise<AdministratorCredentials> {
  const user = await deps.identityDb.read((tx) => findSignInUser(tx, { email }))
  if (!user) throw new UsageError(`There is no user with the address ${email}.`)
  const rights = given ?? rightsOf(user) ?? 'full'
  // The order matters: even an interrupted run is recorded in the audit log, and the admin role is never granted while the
  // old credentials are valid.
  const before = { role: user.role, rights: rightsOf(user), is_active: user.is_active }
  await deps.adminDb.transaction((tx) => record(tx, deps, 'users.reset', user, before, administrator(rights)))
  await deps.identityDb.transaction(async (tx) => {
    await deleteCredentials(tx, user.id)
    await recordUserActivity(tx, user.id, activityOf('users.reset', user.id))
  })
  await deps.adminDb.transaction((tx) => makeAdministrator(tx, user.id, rights))
  return issueCredentials(deps, user.id, email)
}

/**
 * Returns the token of a password reset link. Role and second factor do not change; sessions are revoked when the link is
 * used.
 */
export async function issuePasswordReset(
  deps: Pick<AdministratorDeps, 'adminDb' | 'identityDb' | 'reason'>,
  email: string,
): Promise<string> {
  const user = await deps.identityDb.read((tx) => findSignInUser(tx, { email }))
  if (!user) throw new UsageError(`There is no user with the address ${email}.`)
  if (!user.is_active) throw new UsageError(`${email} is disabled. Enable the user first.`)
  // The order matters: every link that exists is recorded in the audit log, even if the run is interrupted.
  await deps.adminDb.transaction((tx) => record(tx, deps, 'users.reset-password', user, null, null))
  return deps.identityDb.transaction((tx) => issueReset(tx, user.id))
}

/**
 * Removes the authenticator, the backup codes and the passkeys of a user, who then signs in with the password alone, and
 * revokes all sessions and tokens. Passkeys are removed because a lost device may hold them, and one that asks for no PIN would
 * then be enough to sign in.
 */
export async function resetSecondFactor(
  { reason, ...deps }: Pick<AdministratorDeps, 'adminDb' | 'identityDb'> & { reason: string },
  email: string,
): Promise<void> {
  // The order matters: even an interrupted run is recorded in the audit log, and can be repeated.
  const userId = await deps.adminDb.transaction(async (tx) => {
    const user = await lockSignInUser(tx, { email })
    if (!user) throw new UsageError(`There is no user with the address ${email}.`)
    requireCustomer(user)
    if (!user.two_factor_enabled) throw new UsageError(`${email} has no authenticator.`)
    await endSessions(tx, user.id)
    const before = { two_factor_enabled: true, token_generation: user.token_generation }
    const after = { two_factor_enabled: false, token_generation: user.token_generation + 1 }
    await record(tx, { reason }, 'users.reset-second-factor', user, before, after)
    return user.id
  })
  await deps.identityDb.transaction(async (tx) => {
    // An administrator may have granted the role since.
    const user = await lockSignInUser(tx, { id: userId })
    if (!user) return
    requireCustomer(user)
    await deleteSecondFactor(tx, userId)
    await recordUserActivity(tx, userId, activityOf('users.reset-second-factor', userId))
  })
}

function requireCustomer({ email, role }: { email: string; role: string }): void {
  if (role !== 'admin') return
  throw new UsageError(
    `${email} is an administrator, and administrators need a second factor. To issue new credentials, run: postern admin reset --email ${email}`,
  )
}

/** Links an external issuer's subject to this user. */
export async function linkAdministrator(
  deps: AdministratorDeps,
  email: string,
  issuer: string,
  subject: string,
): Promise<void> {
  const { outcome } = await deps.adminDb.transaction(async (tx) => {
    const linked = await linkLogin(tx, email, issuer, subject)
    if (!linked.user) return linked
    // The subject is omitted, because it is often an email address and audit rows cannot be erased.
    const { id } = linked.user
    await recordUserActivity(tx, id, activityOf('users.link', id, { before: null, after: { issuer } }))
    await record(tx, deps, 'users.link', linked.user, null, { issuer })
    return linked
  })
  if (outcome === 'no such user') throw new UsageError(`There is no user with the address ${email}.`)
  if (outcome === 'taken')
    throw new UsageError(`The subject ${subject} of ${issuer} is already linked to another user.`)
}

/**
 * Removes the link, and revokes all of the user's sessions and tokens: the person may have signed in through the issuer. The
 * issuer's tokens of before stay invalid if the subject is linked again.
 */
export async function unlinkAdministrator(
  deps: Pick<AdministratorDeps, 'adminDb' | 'reason'>,
  email: string,
  issuer: string,
  subject: string,
): Promise<void> {
  await deps.adminDb.transaction(async (tx) => {
    const user = await lockSignInUser(tx, { email })
    if (!user) throw new UsageError(`There is no user with the address ${email}.`)
    if (!(await unlinkLogin(tx, user.id, issuer, subject))) {
      throw new UsageError(`The subject ${subject} of ${issuer} is not linked to ${email}.`)
    }
    await endSessions(tx, user.id)
    const change = { before: { issuer }, after: null }
    await recordUserActivity(tx, user.id, activityOf('users.unlink', user.id, change))
    await record(tx, deps, 'users.unlink', user, { issuer }, null)
  })
}

/** The user sees that the operator made the change, and not which person. */
const activityOf = (
  operation: ShellOperation & UserOperation,
  userId: number,
  change: { before: object | null; after: object | null } = { before: null, after: null },
): ActivityEntry<UserOperation> => ({
  actor: system,
  requestId: randomUUIDv7(),
  operation,
  change: { resource: 'account', id: userId, ...change },
})

const administrator = (rights: Rights) => ({ role: 'admin', rights, is_active: true })

/** Writes to the audit chain for global objects, with the command line as the actor. */
function record(
  tx: Tx,
  { reason = '' }: Pick<AdministratorDeps, 'reason'>,
  operation: ShellOperation,
  { id, email, name }: { id: number; email: string; name: string },
  before: object | null,
  after: object | null,
): Promise<number> {
  return recordAudit(tx, {
    actor: shell(`postern, as ${userInfo().username}`),
    requestId: randomUUIDv7(),
    operation,
    projectId: null,
    change: { resource: 'user', id, before, after },
    related: [],
    reason: reason === '' ? null : plainReason(reason),
    limitException: null,
    subject: { email, name },
  })
}

/** Records in the audit log that the command line issued an access token. */
export async function recordShellToken(
  db: Db,
  user: { id: number; email: string; name: string },
): Promise<void> {
  await db.transaction((tx) => record(tx, {}, 'users.issue-token', user, null, null))
}

async function issueCredentials(
  { auth, identityDb }: AdministratorDeps,
  userId: number,
  email: string,
): Promise<AdministratorCredentials> {
  const password = newPassword()
  const context = await auth.$context
  await context.internalAdapter.linkAccount({
    userId: String(userId),
    accountId: String(userId),
    providerId: 'credential',
    password: await context.password.hash(password),
  })
  // Performs, in this process, the steps that a person would take: sign in, then set up the second factor.
  const { headers } = await auth.api.signInEmail({ body: { email, password }, returnHeaders: true })
  const cookie = headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const totp = await auth.api.enableTwoFactor({ body: { password }, headers: new Headers({ cookie }) })
  if (!('totpURI' in totp)) throw new Error('Better Auth returned no TOTP secret')
  await identityDb.transaction((tx) => confirmTotp(tx, userId))
  return { userId, password, totpUri: totp.totpURI, backupCodes: totp.backupCodes }
}

// Without l, I, O, 0 and 1, which are hard to tell apart on a terminal. 20 characters from an alphabet of 57 provide 116
// bits of entropy.
const alphabet = 'abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'

const newPassword = (): string =>
  Array.from({ length: 20 }, () => alphabet.charAt(randomInt(alphabet.length))).join('')
