/**
 * Invitations: a token is emailed to an address, and the person who redeems it becomes a member. An account with the
 * invited address can accept without the token.
 *
 * A token can be used once, within 14 days, and is deleted with its row. Only its SHA-256 is stored. The token is derived
 * from the id of the mail (core/control/notifications), so a mail that is sent again contains the same token. An attacker
 * with the key can compute tokens, but a token is accepted only after its hash has been stored, just before the mail is sent.
 * A trigger of control.members adds the mail.
 */
import { createHash, createHmac, hkdfSync, randomUUIDv7 } from 'node:crypto'
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import { recordProjectActivity, system } from '../activity/activity.ts'
import { beyond, type Caps, type LimitException } from '../caps/caps.ts'
import { labelOf } from '../notifications/customer-text.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import {
  countInvitation,
  findByToken,
  insertInvitedUser,
  join,
  joinInvited,
  listExpired,
  listPending,
  lockPending,
  type PendingRow,
  removeInvitation,
  type ShownInvitation,
  storeHash,
} from './invitations.sql.ts'
import type { MemberRow } from './members.ts'
import type { PendingInvitation, Role } from './wire.ts'

const keyBytes = 32

/** Derived from the first session secret, which is the newest. */
export const invitationKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern invitation tokens', keyBytes))

const tokenPrefix = 'inv_'
const tokenFormat = /^inv_[\w-]{43}$/

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** The text is the same whether or not the address has an account. */
export async function composeInvitation(
  tx: Tx,
  { id, subject_id }: QueuedSystemMail,
  { publicUrl: { origin, host }, invitationKey }: ComposeDeps,
): Promise<AddressedMail | null> {
  const invitation = await lockPending(tx, subject_id)
  if (!invitation) return null
  const { email, role, project_id, project_name, ends_at } = invitation
  const token = tokenPrefix + createHmac('sha256', invitationKey).update(id).digest('base64url')
  await storeHash(tx, subject_id, hashOf(token))
  return {
    to: email,
    subject: `You have been invited to a project at ${host}`,
    blocks: [
      `You have been invited to ${labelOf('project', project_id, project_name)} at ${origin} with the role "${role}".`,
      `To accept, open this link and sign in, or create an account. It can be used once and expires at ${ends_at.toISOString()}.`,
      // The fragment of a URL is not sent to servers, so no server logs it.
      { link: `${origin}/app/invitation#${token}`, label: 'Accept the invitation' },
      'If you did not expect this invitation, ignore this message. The invitation expires.',
    ],
  }
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

/** What the bearer of the token is invited to. */
export async function findInvitation(tx: ReadTx, token: string): Promise<ShownInvitation> {
  const shown = tokenFormat.test(token) ? await findByToken(tx, hashOf(token)) : undefined
  if (!shown) throw invalidInvitation()
  return shown
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
