import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import { networkOf } from '../../../platform/http/rate-limit.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { MailRefused, type SystemMail } from '../notifications/system-mail.ts'
import { deleteChallenges } from './access.sql.ts'
import { forgetFailuresOf } from './password-backoff.sql.ts'
import {
  countToday,
  deleteExpired,
  deleteForNobody,
  deleteOldCounts,
  deleteSessionsOf,
  findUsable,
  insertIssued,
  insertRequest,
  listUnsent,
  markSent,
  setPassword,
  storeHash,
  type UnsentReset,
  useUp,
} from './password-reset.sql.ts'

/**
 * A new password for a person who has lost the old one. A link sets it, once, for an hour where it was mailed and for a
 * day where an operator made it (administrators.ts). Only the SHA-256 of its token is kept. Using it ends every session and
 * changes nothing else: role and second factor stay, and the second factor is asked for at the next sign-in.
 *
 * The request by mail does the same statements for every address, with or without an account; the worker finds out, and
 * mails. The token of a mail is computed from the row, so that a mail that is sent again has the same one.
 */
const mailedMinutes = 60
export const issuedMinutes = 24 * 60

/** Mails in a UTC day: to an account, and asked for from a network. */
const perAccount = 5
const perNetwork = 30
/** Requests that wait for the worker. */
const waitingAtMost = 1_000

const tokenPrefix = 'pwr_'
const tokenForm = /^pwr_[\w-]{43}$/

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** The token is in the fragment, which browsers do not send: no log of a server has it. */
export const resetLink = ({ origin }: URL, token: string): string =>
  `${origin}/console/reset-password#${token}`

export async function requestReset(db: Db, email: string, address: string): Promise<void> {
  await db.transaction(async (tx) => {
    if ((await countToday(tx, 'resets of network', networkOf(address))) > perNetwork) {
      throw new PosternError('rate_limited', 'Too many requests from this network today.', {
        retryAfterSeconds: 3600,
      })
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

/** `hash` is not called for an invalid token. `record` writes the row of the user's activity. */
export async function resetPassword(
  db: Db,
  token: string,
  hash: () => Promise<string>,
  record: (tx: Tx, userId: number) => Promise<void>,
): Promise<void> {
  const tokenHash = hashOf(token)
  const find = async (tx: ReadTx) => (tokenForm.test(token) ? findUsable(tx, tokenHash) : undefined)
  if ((await db.read(find)) === undefined) throw noReset()
  const password = await hash()
  await db.transaction(async (tx) => {
    const userId = await find(tx)
    if (userId === undefined || !(await useUp(tx, userId, tokenHash))) throw noReset()
    await setPassword(tx, userId, password)
    await deleteSessionsOf(tx, userId)
    await deleteChallenges(tx, userId)
    await forgetFailuresOf(tx, userId)
    await record(tx, userId)
  })
}

const noReset = (): PosternError =>
  new PosternError('not_found', 'This link is not valid, was used, or has expired. Request another one.')

export interface ResetMailDeps {
  db: Db
  /** Undefined: nothing can be mailed. */
  systemMail: SystemMail | undefined
  resetKey: Buffer
  publicUrl: URL
  log: Logger
}

/** From the newest of the secrets that protect sessions. */
export const resetKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern password resets', 32))

/** Stores the hash, mails the link and notes that; each of the three may happen again without harm. */
export async function sendDueResets(deps: ResetMailDeps, atMost: number, signal: AbortSignal): Promise<void> {
  const { db, systemMail, resetKey, log } = deps
  await db.transaction(deleteForNobody)
  if (systemMail === undefined) return
  for (const reset of await db.read((tx) => listUnsent(tx, atMost))) {
    if (signal.aborted) return
    const token = tokenPrefix + createHmac('sha256', resetKey).update(String(reset.id)).digest('base64url')
    if (!(await db.transaction((tx) => storeHash(tx, reset.id, hashOf(token))))) continue
    try {
      await systemMail.send(mailFor(reset, token, deps.publicUrl))
    } catch (error) {
      if (!(error instanceof MailRefused)) throw error
      log.warn({ password_reset_id: reset.id, err: error }, 'the mail of a password reset was refused')
    }
    await db.transaction((tx) => markSent(tx, reset.id))
  }
}

const mailFor = (
  { email, expires_at }: UnsentReset,
  token: string,
  publicUrl: URL,
): Parameters<SystemMail['send']>[0] => ({
  to: email,
  subject: `New password at ${publicUrl.host}`,
  text: [
    `A new password was requested for your account at ${publicUrl.origin}.`,
    `Set it with this link, which can be used once, until ${expires_at.toISOString()}:`,
    resetLink(publicUrl, token),
    'Setting it signs you out everywhere. Your second factor stays as it is.',
    'If you did not request this, do nothing. Your password stays as it is.',
  ].join('\n\n'),
})

export const purgeResets = (tx: Tx): Promise<number> => deleteExpired(tx, purgedAtOnce)
export const purgeDailyCounts = (tx: Tx): Promise<number> => deleteOldCounts(tx, purgedAtOnce)
