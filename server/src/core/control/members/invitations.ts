import { createHash, createHmac, hkdfSync, randomUUIDv7 } from 'node:crypto'
import type { Static } from 'typebox'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { plainName } from '../../shared/text.ts'
import { recordProjectActivity, system } from '../activity/activity.ts'
import { beyond, type Caps, type LimitException } from '../caps/caps.ts'
import { MailRefused, type SystemMail } from '../notifications/system-mail.ts'
import {
  countInvitation,
  type Invitation,
  insertInvitedUser,
  join,
  joinInvited,
  listExpired,
  listPending,
  listUnsent,
  lockUnsent,
  markSent,
  type PendingRow,
  removeInvitation,
  storeHash,
} from './invitations.sql.ts'
import type { MemberRow } from './members.ts'
import type { PendingInvitation, Role } from './wire.ts'

/**
 * Invitations: an address is mailed a token, and the person who has that becomes the member. An account with the address
 * can accept without the token.
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

/** The text is fixed, and the same whether or not the address has an account. */
function mailOf(
  { email, role, project_id, project_name, ends_at }: Invitation,
  token: string,
  { origin, host }: URL,
): Parameters<SystemMail['send']>[0] {
  return {
    to: email,
    subject: `Invitation to a project at ${host}`,
    text: [
      `You are invited to ${projectLabel(project_id, project_name)} at ${origin} as ${role}.`,
      `Your token, which can be used once, until ${ends_at.toISOString()}:`,
      token,
      `If you have an account at ${origin}, sign in and send the token to ${origin}/v1/invitations/accept.`,
      `If you have none, send it with your name and a password to ${origin}/v1/auth/join.`,
      'If you did not expect this mail, do nothing. The invitation expires.',
    ].join('\n\n'),
  }
}

// Letters, digits and a few signs, none of which a mail client makes a link of. A dot, a colon, a slash or an @ is not
// among them, nor is what Unicode compatibility turns into one.
const linklessName = /^[\p{L}\p{M}\p{Nd} '&+,()_-]{1,60}$/u
// Phones make a number to call of a few digits more.
const digitsAtMost = 4

/** A tenant chooses the name: it is shown where it can hold no address, no link and no phone number. */
export function projectLabel(projectId: number, name: string): string {
  const plain = name.normalize('NFKC')
  const isShown = linklessName.test(plain) && (plain.match(/\p{Nd}/gu)?.length ?? 0) <= digitsAtMost
  return isShown ? `the project "${plain}" (number ${projectId})` : `project number ${projectId}`
}

/**
 * Counts an invitation of today: of the project, of the customer who invites (null for an administrator, who is not
 * counted) and of the address. The exception is the first cap that it goes past.
 */
export async function invitationsBeyond(
  tx: Tx,
  caps: Caps,
  projectId: number,
  userId: number | null,
  email: string,
): Promise<LimitException | null> {
  const { of_project, of_user, of_address } = await countInvitation(tx, projectId, userId, email)
  const beyondCap = (cap: InvitationCap, count: number) => beyond(cap, caps[cap], count)
  return (
    beyondCap('max_invitations_per_project_per_day', of_project) ??
    beyondCap('max_invitations_per_user_per_day', of_user) ??
    beyondCap('max_invitations_per_address_per_day', of_address)
  )
}

type InvitationCap = `max_invitations_per_${'project' | 'user' | 'address'}_per_day`

export const listInvitationsTo = listPending

export const pendingView = (row: PendingRow): Static<typeof PendingInvitation> => ({
  id: row.id,
  project_id: row.project_id,
  project_name: row.project_name,
  role: row.role as Role,
  invited_at: row.invited_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
})

/** The signed-in user becomes the member, whatever address the invitation went to: they have the token. */
export async function acceptInvitation(tx: Tx, token: string, userId: number): Promise<MemberRow> {
  return joinedOr404(tokenForm.test(token) ? await join(tx, hashOf(token), userId) : undefined)
}

/** The same without the token: the account has the address that was invited. */
export const acceptInvitationTo = async (tx: Tx, memberId: number, userId: number): Promise<MemberRow> =>
  joinedOr404(await joinInvited(tx, memberId, userId))

function joinedOr404(joined: Awaited<ReturnType<typeof join>>): MemberRow {
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

/** In one transaction: each keeps the end of its project's activity locked. */
const expiredAtOnce = 50

/** Invitations that nobody accepted: the address of somebody who never answered is not kept for ever. How many went. */
export async function purgeExpiredInvitations(tx: Tx): Promise<number> {
  let purged = 0
  const expired = await listExpired(tx, expiredAtOnce)
  for (const { id, project_id, email, role } of expired.toSorted((a, b) => a.project_id - b.project_id)) {
    if (!(await removeInvitation(tx, project_id, id))) continue
    await recordProjectActivity(tx, project_id, {
      actor: system,
      requestId: randomUUIDv7(),
      operation: 'invitations.expire',
      change: { resource: 'member', id, before: { email, role }, after: null },
    })
    purged++
  }
  return purged
}

const noInvitation = (): PosternError =>
  new PosternError(
    'not_found',
    'This is no invitation, or it was used, withdrawn or is too old. Ask for another one.',
  )
