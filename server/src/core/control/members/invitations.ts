/**
 * Invitations: a token is emailed to an address, and the person who redeems it becomes a member. An account with the
 * invited address can accept without the token.
 *
 * A token can be used once, within 14 days, and is deleted with its row. Only its SHA-256 is stored. The token is derived
 * from the member and its version, so a repeated job emails the same token. An attacker with the key can compute tokens,
 * but a token is accepted only after its hash has been stored, just before the email is sent.
 */
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

export interface InvitationDeps {
  db: Db
  /** Undefined if this installation sends no system mail. */
  systemMail: SystemMail | undefined
  invitationKey: Buffer
  publicUrl: URL
  log: Logger
}

const keyBytes = 32

/** Derived from the first session secret, which is the newest. */
export const invitationKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern invitation tokens', keyBytes))

const tokenPrefix = 'inv_'
const tokenFormat = /^inv_[\w-]{43}$/

const tokenOf = (key: Buffer, { member_id, version }: Invitation): string =>
  tokenPrefix + createHmac('sha256', key).update(`${member_id}/${version}`).digest('base64url')

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Stores the hash of the token, emails the token and marks it as sent. Each of the three steps can be repeated. */
export async function sendInvitation(
  deps: InvitationDeps,
  projectId: number,
  memberId: number,
): Promise<void> {
  const { db, systemMail, invitationKey, log } = deps
  const about = { project_id: projectId, member_id: memberId }
  if (systemMail === undefined) {
    log.warn(about, 'invitation not mailed: POSTERN_SYSTEM_MAIL_FROM and POSTERN_MTA_HOSTS are not set')
    return
  }
  const pending = await db.transaction(async (tx) => {
    const invitation = await lockUnsent(tx, projectId, memberId)
    if (!invitation) return undefined
    const token = tokenOf(invitationKey, invitation)
    await storeHash(tx, memberId, hashOf(token))
    return { invitation, token }
  })
  if (!pending) return
  try {
    await systemMail.send(composeMail(pending.invitation, pending.token, deps.publicUrl))
  } catch (error) {
    if (!(error instanceof MailRefused)) throw error
    log.warn({ ...about, err: error }, 'invitation mail permanently rejected')
  }
  await db.transaction((tx) => markSent(tx, memberId))
}

/** Sends invitations whose job was lost, or was abandoned because the MTA was unavailable. */
export async function sendDueInvitations(
  deps: InvitationDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> {
  if (deps.systemMail === undefined) return
  const due = await deps.db.read((tx) => listUnsent(tx, atMost))
  for (const { project_id, member_id } of due) {
    if (signal.aborted) return
    // If the MTA is unavailable, this throws, and the next run tries again.
    await sendInvitation(deps, project_id, member_id)
  }
}

/** The text is the same whether or not the address has an account. */
function composeMail(
  { email, role, project_id, project_name, ends_at }: Invitation,
  token: string,
  { origin, host }: URL,
): Parameters<SystemMail['send']>[0] {
  return {
    to: email,
    subject: `You have been invited to a project at ${host}`,
    text: [
      `You have been invited to ${projectLabel(project_id, project_name)} at ${origin} with the role "${role}".`,
      `This is your invitation token. It can be used once and expires at ${ends_at.toISOString()}:`,
      token,
      `If you have an account at ${origin}, sign in and send the token to ${origin}/v1/invitations/accept.`,
      `If you do not have an account, send the token, your name and a password to ${origin}/v1/auth/register.`,
      'If you did not expect this invitation, ignore this message. The invitation expires.',
    ].join('\n\n'),
  }
}

// Letters, digits and a few characters that mail clients do not turn into links. Dot, colon, slash and @ are excluded, as
// well as characters that Unicode compatibility normalization maps to one of them.
const linklessName = /^[\p{L}\p{M}\p{Nd} '&+,()_-]{1,60}$/u
// Phones turn longer digit sequences into phone numbers.
const maxDigits = 4

/** The customer chooses the name, so it is shown only if it cannot contain an address, a link or a phone number. */
export function projectLabel(projectId: number, name: string): string {
  const plain = name.normalize('NFKC')
  const isShown = linklessName.test(plain) && (plain.match(/\p{Nd}/gu)?.length ?? 0) <= maxDigits
  return isShown ? `the project "${plain}" (number ${projectId})` : `project number ${projectId}`
}

/**
 * Counts an invitation for today: for the project, for the inviting customer (null for an administrator, who is not
 * counted) and for the address. Returns the first cap that is exceeded.
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

/** The signed-in user becomes the member, whatever the invited address is, because the token is sufficient. */
export async function acceptInvitation(tx: Tx, token: string, userId: number): Promise<MemberRow> {
  return joinedOr404(tokenFormat.test(token) ? await join(tx, hashOf(token), userId) : undefined)
}

/** The same without the token, for the account with the invited address. */
export const acceptInvitationTo = async (tx: Tx, memberId: number, userId: number): Promise<MemberRow> =>
  joinedOr404(await joinInvited(tx, memberId, userId))

function joinedOr404(joined: Awaited<ReturnType<typeof join>>): MemberRow {
  if (!joined) throw invalidInvitation()
  const { is_joined, ...member } = joined
  if (!is_joined) {
    throw new PosternError(
      'already_exists',
      `You are already a member of project ${member.project_id}, with the role "${member.role}".`,
    )
  }
  return member
}

/** Creates an account with the invited address. The token proves that the person owns the address. */
export async function createInvitedUser(tx: Tx, token: string, name: string): Promise<number> {
  const wanted = plainName(name, 'name')
  const userId = tokenFormat.test(token) ? await insertInvitedUser(tx, hashOf(token), wanted) : undefined
  if (userId === undefined) throw invalidInvitation()
  if (userId === null) {
    throw new PosternError(
      'already_exists',
      'An account with the invited address already exists. Sign in and accept the invitation.',
    )
  }
  return userId
}

/** Rows per transaction. Small, because each row locks the head of its project's activity chain. */
const expiredAtOnce = 50

/** Deletes expired invitations, including their addresses. Returns the number of deleted invitations. */
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

const invalidInvitation = (): PosternError =>
  new PosternError(
    'not_found',
    'This invitation is invalid, has already been used, was withdrawn, or has expired. Ask for a new one.',
  )
