import { createHash, createHmac, hkdfSync } from 'node:crypto'
import type { Db, Tx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import type { Logger } from '../../platform/log.ts'
import { plainName } from '../text.ts'
import {
  type Invitation,
  insertInvitedUser,
  join,
  listUnsent,
  lockUnsent,
  markSent,
  storeHash,
} from './invitations.sql.ts'
import type { MemberRow } from './members.ts'
import { MailRefused, type SystemMail } from './system-mail.ts'

/**
 * Invitations: an address without an account is mailed a token, and whoever has that becomes the member.
 *
 * A token is good once, for 14 days, and ends with its row. Only its SHA-256 is kept. It is computed from the member and
 * its version, so that a job that is run again mails the same one; who knows the key could make tokens, but none that
 * a row is waiting for before its mail went out.
 */
export interface InvitationDeps {
  db: Db
  /** Undefined: nothing can be mailed. */
  systemMail: SystemMail | undefined
  invitationKey: Buffer
  publicUrl: URL
  log: Logger
}

const keyBytes = 32

/** From the first, and so the newest, of the secrets that protect sessions. */
export const invitationKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern invitation tokens', keyBytes))

const tokenPrefix = 'inv_'
const tokenForm = /^inv_[\w-]{43}$/

const tokenOf = (key: Buffer, { member_id, version }: Invitation): string =>
  tokenPrefix + createHmac('sha256', key).update(`${member_id}/${version}`).digest('base64url')

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Draws the token, mails it and notes that; each of the three may happen again without harm. */
export async function sendInvitation(
  deps: InvitationDeps,
  projectId: number,
  memberId: number,
): Promise<void> {
  const { db, systemMail, invitationKey, log } = deps
  const about = { project_id: projectId, member_id: memberId }
  if (systemMail === undefined) {
    log.warn(about, 'an invitation is not mailed: POSTERN_SYSTEM_MAIL_FROM and POSTERN_MTA_HOSTS are not set')
    return
  }
  const drawn = await db.transaction(async (tx) => {
    const invitation = await lockUnsent(tx, projectId, memberId)
    if (!invitation) return undefined
    const token = tokenOf(invitationKey, invitation)
    await storeHash(tx, memberId, hashOf(token))
    return { invitation, token }
  })
  if (!drawn) return
  try {
    await systemMail.send(mailOf(drawn.invitation, drawn.token, deps.publicUrl))
  } catch (error) {
    if (!(error instanceof MailRefused)) throw error
    log.warn({ ...about, err: error }, 'the mail of an invitation was refused for good')
  }
  await db.transaction((tx) => markSent(tx, memberId))
}

/** Those whose job was lost, or whose MTA was away for longer than it tried. */
export async function sendDueInvitations(
  deps: InvitationDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> {
  if (deps.systemMail === undefined) return
  const due = await deps.db.read((tx) => listUnsent(tx, atMost))
  for (const { project_id, member_id } of due) {
    if (signal.aborted) return
    // An MTA that is away for one is away for all: the next round tries again.
    await sendInvitation(deps, project_id, member_id)
  }
}

function mailOf(
  { email, role, project_name, invited_by, ends_at }: Invitation,
  token: string,
  { origin }: URL,
): Parameters<SystemMail['send']>[0] {
  return {
    to: email,
    subject: `Invitation to ${project_name}`,
    text: [
      `${invited_by ?? 'Somebody'} invites you to the project "${project_name}" as ${role}.`,
      `Your token, good once and until ${ends_at.toISOString()}:`,
      token,
      `If you have an account at ${origin}, sign in and send the token to ${origin}/v1/invitations/accept.`,
      `If you have none, send it with your name and a password to ${origin}/v1/auth/join.`,
      'If you did not expect this, do nothing: the invitation ends by itself.',
    ].join('\n\n'),
  }
}

/** The signed-in user becomes the member, whatever address the invitation went to: they have the token. */
export async function acceptInvitation(tx: Tx, token: string, userId: number): Promise<MemberRow> {
  const joined = tokenForm.test(token) ? await join(tx, hashOf(token), userId) : undefined
  if (!joined) throw noInvitation()
  const { is_joined, ...member } = joined
  if (!is_joined) {
    throw new PosternError(
      'already_exists',
      `You are a member of project ${member.project_id} already, as ${member.role}.`,
    )
  }
  return member
}

/** An account for whoever has none; the address is the invitation's, and proved by the token. */
export async function createInvitedUser(tx: Tx, token: string, name: string): Promise<number> {
  const wanted = plainName(name, 'name')
  const userId = tokenForm.test(token) ? await insertInvitedUser(tx, hashOf(token), wanted) : undefined
  if (userId === undefined) throw noInvitation()
  if (userId === null) {
    throw new PosternError(
      'already_exists',
      'There is an account with the address that was invited. Sign in and accept the invitation.',
    )
  }
  return userId
}

const noInvitation = (): PosternError =>
  new PosternError(
    'not_found',
    'This is no invitation, or it was used, withdrawn or is too old. Ask for another one.',
  )
