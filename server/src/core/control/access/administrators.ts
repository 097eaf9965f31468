import { randomInt, randomUUIDv7 } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { UsageError } from '../../../platform/errors.ts'
import { plainReason } from '../../shared/text.ts'
import { recordUserActivity, system } from '../activity/activity.ts'
import { recordAudit, shell } from '../audit/record.ts'
import {
  confirmTotp,
  findSignInUser,
  forgetCredentials,
  insertAdministrator,
  linkLogin,
  makeAdministrator,
} from './access.sql.ts'
import type { BetterAuth } from './better-auth.ts'
import { issueReset } from './password-reset.ts'

/**
 * Administrators made at the server's own shell: with password and second factor in one go, so that there
 * is no moment at which one could sign in with a password alone. A run that is cut short leaves an
 * administrator whose credentials nobody has seen; `reset` gives new ones.
 */
export interface Enrolment {
  userId: number
  password: string
  totpUri: string
  backupCodes: string[]
}

export interface AdministratorDeps {
  auth: BetterAuth
  adminDb: Db
  identityDb: Db
  /** For the audit, where the person at the shell gave one. */
  reason?: string | undefined
}

export async function createAdministrator(
  deps: AdministratorDeps,
  email: string,
  name: string,
): Promise<Enrolment> {
  return giveCredentials(deps, await grantAdministrator(deps, email, name), email)
}

/** Without credentials: nobody can sign in as them yet. */
export async function grantAdministrator(
  deps: Pick<AdministratorDeps, 'adminDb' | 'reason'>,
  email: string,
  name: string,
): Promise<number> {
  const user = await deps.adminDb.transaction(async (tx) => {
    const made = await insertAdministrator(tx, email, name)
    if (made) await record(tx, deps, 'users.create', { id: made.id, email, name }, null)
    return made
  })
  if (!user) {
    throw new UsageError(
      `A user with the address ${email} exists. To make them an administrator with new credentials, run: postern admin reset --email ${email}`,
    )
  }
  return user.id
}

/** New password, new second factor, every session and token ended, active, administrator. */
export async function resetAdministrator(deps: AdministratorDeps, email: string): Promise<Enrolment> {
  const user = await deps.identityDb.read((tx) => findSignInUser(tx, { email }))
  if (!user) throw new UsageError(`There is no user with the address ${email}.`)
  // In this order: what is cut short is told, and nobody comes in with the old credentials as what the user is made here.
  await deps.adminDb.transaction((tx) =>
    record(tx, deps, 'users.reset', user, { role: user.role, is_active: user.is_active }),
  )
  await deps.identityDb.transaction(async (tx) => {
    await forgetCredentials(tx, user.id)
    await recordUserActivity(tx, user.id, {
      actor: system,
      requestId: randomUUIDv7(),
      operation: 'users.reset',
      change: { resource: 'account', id: user.id, before: null, after: null },
    })
  })
  await deps.adminDb.transaction((tx) => makeAdministrator(tx, user.id))
  return giveCredentials(deps, user.id, email)
}

/** The token of a link by which the person sets a new password. Role, second factor and sessions stay until it is used. */
export async function issuePasswordReset(
  deps: Pick<AdministratorDeps, 'adminDb' | 'identityDb' | 'reason'>,
  email: string,
): Promise<string> {
  const user = await deps.identityDb.read((tx) => findSignInUser(tx, { email }))
  if (!user) throw new UsageError(`There is no user with the address ${email}.`)
  if (!user.is_active) throw new UsageError(`${email} is disabled. Enable the user first.`)
  // In this order: what is cut short is recorded, and no link is made that is not.
  await deps.adminDb.transaction((tx) => record(tx, deps, 'users.reset-password', user, null, null))
  return deps.identityDb.transaction((tx) => issueReset(tx, user.id))
}

/** Lets an outside issuer's user be this administrator. */
export async function linkAdministrator(
  deps: AdministratorDeps,
  email: string,
  issuer: string,
  subject: string,
): Promise<void> {
  const { outcome } = await deps.adminDb.transaction(async (tx) => {
    const linked = await linkLogin(tx, email, issuer, subject)
    // Without the subject, which is often an address and could not be erased.
    if (linked.user) await record(tx, deps, 'users.link', linked.user, null, { issuer })
    return linked
  })
  if (outcome === 'no such user') throw new UsageError(`There is no user with the address ${email}.`)
  if (outcome === 'taken')
    throw new UsageError(`The subject ${subject} of ${issuer} is linked to another user already.`)
}

/** In the chain of what belongs to no project, by the shell. */
function record(
  tx: Tx,
  { reason = '' }: Pick<AdministratorDeps, 'reason'>,
  operation: string,
  { id, email, name }: { id: number; email: string; name: string },
  before: object | null,
  after: object | null = { role: 'admin', is_active: true },
): Promise<void> {
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

/** An access token drawn at the shell, which whoever reads the audit must be able to see. */
export async function recordDrawnToken(
  db: Db,
  user: { id: number; email: string; name: string },
): Promise<void> {
  await db.transaction((tx) => record(tx, {}, 'users.draw-token', user, null, null))
}

async function giveCredentials(
  { auth, identityDb }: AdministratorDeps,
  userId: number,
  email: string,
): Promise<Enrolment> {
  const password = newPassword()
  const context = await auth.$context
  await context.internalAdapter.linkAccount({
    userId: String(userId),
    accountId: String(userId),
    providerId: 'credential',
    password: await context.password.hash(password),
  })
  // The same steps a person takes, in this process: sign in, set up the second factor.
  const { headers } = await auth.api.signInEmail({ body: { email, password }, returnHeaders: true })
  const cookie = headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const totp = await auth.api.enableTwoFactor({ body: { password }, headers: new Headers({ cookie }) })
  if (!('totpURI' in totp)) throw new Error('Better Auth gave no TOTP seed')
  await identityDb.transaction((tx) => confirmTotp(tx, userId))
  return { userId, password, totpUri: totp.totpURI, backupCodes: totp.backupCodes }
}

// No l, I, O, 0, 1: it is read off a terminal. 20 of 57 characters are 116 bits.
const alphabet = 'abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'

const newPassword = (): string =>
  Array.from({ length: 20 }, () => alphabet.charAt(randomInt(alphabet.length))).join('')
