/**
 * Sign-up, if the operator allows it. A link is emailed to the address, and the account is created when the link is opened
 * and the password is entered again. Without the password, a person who receives a link for which they did not ask could
 * create an account whose password another person knows.
 *
 * A request runs the same statements, and hashes one password, for every address. The worker looks up whether the address has
 * an account, and emails the link or the message that the account exists.
 */
import { createHash, createHmac } from 'node:crypto'
import type { Db, OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import { networkOf } from '../../../platform/http/rate-limit.ts'
import { plainName } from '../../shared/text.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import { insertPassword } from './access.sql.ts'
import { countToday } from './daily-counts.sql.ts'
import { signInAddress } from './email.ts'
import {
  createUser,
  deleteExpired,
  deleteSignUps,
  findRequested,
  findUsable,
  insertSignUp,
  storeHash,
} from './sign-up.sql.ts'

/** Sign-ups per UTC day. */
export interface SignUpLimits {
  ofNetwork: number
  all: number
}

const validHours = 24
/** The maximum number of messages to one address per UTC day. */
const perAddress = 3

const tokenPrefix = 'sup_'
const tokenForm = /^sup_[\w-]{43}$/

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

export async function requestSignUp(
  db: Db,
  { email: given, name: givenName }: { email: string; name: string },
  address: string,
  limits: SignUpLimits,
  hash: () => Promise<string>,
): Promise<void> {
  const email = signInAddress(given)
  if (email === undefined) throw new PosternError('validation_failed', '"email" must be an email address.')
  const name = plainName(givenName, 'name')
  const isMailed = await db.transaction(async (tx) => {
    await countSignUp(tx, address, limits)
    return (await countToday(tx, 'sign-ups of address', email)) <= perAddress
  })
  const password = await hash()
  if (isMailed) await db.transaction((tx) => insertSignUp(tx, { email, name, password, hours: validHours }))
}

/** Counts a sign-up from this address, and rejects it beyond the limits. */
export async function countSignUp(tx: Tx, address: string, limits: SignUpLimits): Promise<void> {
  // The network first: one that has reached its limit must not use up the limit of all.
  const ofNetwork = await countToday(tx, 'sign-ups of network', networkOf(address))
  if (ofNetwork > limits.ofNetwork) throw tooMany('from this network ')
  if ((await countToday(tx, 'sign-ups', 'all')) > limits.all) throw tooMany('')
}

const tooMany = (where: string): PosternError =>
  new PosternError('rate_limited', `Too many sign-ups ${where}today. Try again tomorrow.`, {
    retryAfterSeconds: 3600,
  })

/** Creates the account. `verify` rejects a wrong password, and `record` writes the user's activity row. */
export async function confirmSignUp(
  db: Db,
  token: string,
  verify: (hash: string, email: string) => Promise<void>,
  record: (tx: Tx, user: { id: number; email: string }) => Promise<void>,
): Promise<string> {
  const find = async (tx: ReadTx) => (tokenForm.test(token) ? findUsable(tx, hashOf(token)) : undefined)
  const signUp = await db.read(find)
  if (!signUp) throw invalidLink()
  const { email, password_hash } = signUp
  await verify(password_hash, email)
  await db.transaction(async (tx) => {
    if (!(await find(tx))) throw invalidLink()
    const id = await createUser(tx, hashOf(token))
    if (id === undefined) throw invalidLink()
    if (id === null) {
      throw new PosternError('already_exists', 'An account with this address already exists. Sign in.')
    }
    await insertPassword(tx, id, password_hash)
    await deleteSignUps(tx, email)
    await record(tx, { id, email })
  })
  return email
}

const invalidLink = (): PosternError =>
  new PosternError('not_found', 'This link is invalid, has already been used, or has expired. Sign up again.')

export async function composeSignUp(
  tx: Tx,
  { id, subject_id }: QueuedSystemMail,
  { publicUrl: { origin, host }, accountKey }: ComposeDeps,
): Promise<AddressedMail | null> {
  const signUp = await findRequested(tx, subject_id)
  if (!signUp) return null
  if (signUp.has_account) {
    return {
      to: signUp.email,
      subject: `You already have an account at ${host}`,
      blocks: [
        `Someone signed up at ${origin} with this address, which already has an account. Your account does not change.`,
        { link: `${origin}/app/`, label: 'Sign in' },
        'If you do not know your password, choose "Forgot your password?" on that page.',
        'If you did not sign up, ignore this message.',
      ],
    }
  }
  const token =
    tokenPrefix +
    createHmac('sha256', accountKey)
      .update(tokenPrefix + id)
      .digest('base64url')
  await storeHash(tx, subject_id, hashOf(token))
  return {
    to: signUp.email,
    subject: `Confirm your email address for ${host}`,
    blocks: [
      `Someone signed up at ${origin} with this address.`,
      `To create the account, open this link and enter the password that you chose. The link can be used once and expires at ${signUp.expires_at.toISOString()}.`,
      { link: `${origin}/app/confirm-sign-up#${token}`, label: 'Confirm your email address' },
      'If you did not sign up, ignore this message. No account is created.',
    ],
  }
}

export const purgeSignUps = (tx: OneStatement): Promise<number> => deleteExpired(tx, purgedAtOnce)
