import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { countAll, countOf, countProjectsOf, type Held } from './caps.sql.ts'

export { countAll, countProjectsOf }

/**
 * Caps: how many of a thing a project or a user can have, where the plan does not say. One table for all of them. An
 * operator changes a cap by its setting. Customers are refused beyond it with `limit_exceeded`; an administrator goes past
 * it with a reason. docs/operations/limits.md lists these together with the plan's limits.
 */
export const capTable = {
  max_endpoints: {
    setting: 'POSTERN_MAX_ENDPOINTS',
    default: 20,
    about: 'Endpoints of a project.',
  },
  max_routes: {
    setting: 'POSTERN_MAX_ROUTES',
    default: 1_000,
    about: 'Routes of a project.',
  },
  max_api_keys: {
    setting: 'POSTERN_MAX_API_KEYS',
    default: 100,
    about: 'API keys of a project.',
  },
  max_pending_invitations: {
    setting: 'POSTERN_MAX_PENDING_INVITATIONS',
    default: 50,
    about: 'Invitations of a project that have not been accepted yet.',
  },
  max_invitations_per_project_per_day: {
    setting: 'POSTERN_MAX_INVITATIONS_PER_PROJECT_PER_DAY',
    default: 50,
    about: 'Invitations that a project sends in a UTC day.',
  },
  max_invitations_per_user_per_day: {
    setting: 'POSTERN_MAX_INVITATIONS_PER_USER_PER_DAY',
    default: 50,
    about: 'Invitations that a customer sends in a UTC day, over all projects.',
  },
  max_invitations_per_address_per_day: {
    setting: 'POSTERN_MAX_INVITATIONS_PER_ADDRESS_PER_DAY',
    default: 5,
    about: 'Invitations sent to one address in a UTC day, over all projects.',
  },
  max_suppressions: {
    setting: 'POSTERN_MAX_SUPPRESSIONS',
    default: 100_000,
    about: 'Addresses that a project has suppressed manually. Bounces and complaints do not count.',
  },
  max_projects_per_owner: {
    setting: 'POSTERN_MAX_PROJECTS_PER_OWNER',
    default: 20,
    about: 'Projects of one owner.',
  },
  max_dkim_rotations_per_day: {
    setting: 'POSTERN_MAX_DKIM_ROTATIONS_PER_DAY',
    default: 10,
    about: 'Rotations of the DKIM key of one domain in a UTC day.',
  },
  max_dkim_keys_per_day: {
    setting: 'POSTERN_MAX_DKIM_KEYS_PER_DAY',
    default: 200,
    about: 'DKIM keys that a project makes in a UTC day, by adding, editing and rotating domains.',
  },
} as const

export type CapName = keyof typeof capTable
/** Of what a project holds in control. */
export type ProjectCapName = Extract<CapName, Held>
export type Caps = Readonly<Record<CapName, number>> & DailyLimits

/** Bytes that a project may store in a UTC day. Beyond them is `quota_exceeded`, as for mails, and no reason helps. */
export interface ByteLimits {
  readonly max_bytes_per_day: number
  readonly max_inbound_bytes_per_day: number
}

/** Besides: mails that a project may forward in a UTC day. They count as mails of the plan, too. */
export interface DailyLimits extends ByteLimits {
  readonly max_forwards_per_day: number
}

export type PlanLimitName = 'max_domains' | 'max_users'

/** A limit that was gone past, or would be. */
export interface LimitException {
  limit: CapName | PlanLimitName
  value: number
  /** What there is then. */
  count: number
}

export const beyond = (
  limit: LimitException['limit'],
  value: number,
  count: number,
): LimitException | null => (count > value ? { limit, value, count } : null)

/** The same for what a project has of a thing, the new one included. */
export const projectBeyond = async (
  tx: ReadTx,
  caps: Caps,
  limit: ProjectCapName,
  projectId: number,
): Promise<LimitException | null> => beyond(limit, caps[limit], await countOf(tx, limit, projectId))

const allows = (limit: LimitException['limit']): string =>
  limit in capTable ? 'This installation allows' : 'The plan in force allows'

/** `remedy`: what the caller can do about it. */
export const limitExceeded = ({ limit, value, count }: LimitException, remedy: string): PosternError =>
  new PosternError(
    'limit_exceeded',
    `${allows(limit)} ${value} (${limit}), and this would be number ${count}. ${remedy}`,
  )
