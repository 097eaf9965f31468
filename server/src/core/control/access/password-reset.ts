/**
 * Password reset links. A link can be used once: within an hour if it was emailed, within a day if an operator created it
 * (administrators.ts). Only the SHA-256 of its token is stored. Using the link revokes all of the user's sessions. The role
 * and the second factor do not change, and the next sign-in requires the second factor.
 *
 * A request runs the same statements for every address, with or without an account: it adds a mail to the queue of system
 * mail (core/control/notifications). The worker looks up the account and emails the link.
 */
import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import type { Db, OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import { networkOf } from '../../../platform/http/rate-limit.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import { deleteChallenges } from './access.sql.ts'
import { countToday, deleteOldCounts } from './daily-counts.sql.ts'
import { deleteFailuresOfUser } from './password-backoff.sql.ts'
import {
  consumeToken,
  deleteExpired,
  deleteSessionsOf,
  deleteWithoutAccount,
  findRequested,
  findUsable,
  insertIssued,
  insertRequest,
  setPassword,
  storeHash,
} from './password-reset.sql.ts'

const mailedMinutes = 60
export const issuedMinutes = 24 * 60

/** The maximum number of messages per UTC day: to one account, and requested from one network. */
const perAccount = 5
const perNetwork = 30
/** The maximum number of requests waiting for the worker. */
const waitingAtMost = 1_000

const tokenPrefix = 'pwr_'
const tokenForm = /^pwr_[\w-]{43}$/

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** The token is in the fragment, which browsers do not send, so no server logs it. */
export const resetLink = ({ origin }: URL, token: string): string => `${origin}/app/reset-password#${token}`

export async function requestReset(db: Db, email: string, address: string): Promise<void> {
  await db.transaction(async (tx) => {
    if ((await countToday(tx, 'resets of network', networkOf(address))) > perNetwork) {
      throw new PosternError(
        'rate_limited',
        'Too many password reset requests from this network today. Try again tomorrow.',
        {
          retryAfterSeconds: 3600,
        },
      )
    }
    const account = email.toLowerCase()
    if ((await countToday(tx, 'resets of account', account)) > perAccount) return
    await insertRequest(tx, account, { minutes: mailedMinutes, waitingAtMost })
  })
}

export async function issueReset(tx: Tx, userId: number): Promise<string> {
  const token = tokenPrefix + randomBytes(32).toString('base64url')
  await insertIssued(tx, userId, hashOf(token), issuedMinutes)
  return token
}

/** `hash` is not called for an invalid token. `record` writes the user's activity row. */
export async function resetPassword(
  db: Db,
  token: string,
  hash: () => Promise<string>,
  record: (tx: Tx, userId: number) => Promise<void>,
): Promise<void> {
  const tokenHash = hashOf(token)
  const find = async (tx: ReadTx) => (tokenForm.test(token) ? findUsable(tx, tokenHash) : undefined)
  if ((await db.read(find)) === undefined) throw invalidLink()
  const password = await hash()
  await db.transaction(async (tx) => {
    const userId = await find(tx)
    if (userId === undefined || !(await consumeToken(tx, userId, tokenHash))) throw invalidLink()
    await setPassword(tx, userId, password)
    await deleteSessionsOf(tx, userId)
    await deleteChallenges(tx, userId)
    await deleteFailuresOfUser(tx, userId)
    await record(tx, userId)
  })
}

const invalidLink = (): PosternError =>
  new PosternError(
    'not_found',
    'This link is invalid, has already been used, or has expired. Request a new one.',
  )

/** Derived from the newest session secret. */
export const resetKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern password resets', 32))

/** Deletes the request if its address has no account. */
export async function composePasswordReset(
  tx: Tx,
  { id, subject_id }: QueuedSystemMail,
  { publicUrl, resetKey }: ComposeDeps,
): Promise<AddressedMail | null> {
  await deleteWithoutAccount(tx, subject_id)
  const reset = await findRequested(tx, subject_id)
  if (!reset) return null
  const token = tokenPrefix + createHmac('sha256', resetKey).update(id).digest('base64url')
  await storeHash(tx, subject_id, hashOf(token))
  return {
    to: reset.email,
    subject: `Reset your password for ${publicUrl.host}`,
    blocks: [
      `Someone requested a password reset for your account at ${publicUrl.origin}.`,
      `To choose a new password, open this link. It can be used once and expires at ${reset.expires_at.toISOString()}.`,
      { link: resetLink(publicUrl, token), label: 'Choose a new password' },
      'Resetting your password signs you out on all devices. Your second factor does not change.',
      'If you did not request this, ignore this message. Your password does not change.',
    ],
  }
}

export const purgeResets = (tx: OneStatement): Promise<number> => deleteExpired(tx, purgedAtOnce)
export const purgeDailyCounts = (tx: OneStatement): Promise<number> => deleteOldCounts(tx, purgedAtOnce)
