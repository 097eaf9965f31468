/**
 * Caps: how many of a resource a project or a user can have, where the plan sets no limit. Operators change a cap by its
 * setting. Customers beyond a cap are refused with `limit_exceeded`; an administrator exceeds it with a reason.
 * docs/operations/limits.md lists the caps together with the plan's limits.
 */
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type CountedLimit, countAll, countOf, countProjectsOf } from './caps.sql.ts'

export { countAll, countProjectsOf }

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
    about: 'DKIM keys that a project creates in a UTC day, by adding, editing and rotating domains.',
  },
} as const

export type CapName = keyof typeof capTable
/** Caps of resources that a project has in control. */
export type ProjectCapName = Extract<CapName, CountedLimit>
export type Caps = Readonly<Record<CapName, number>> & DailyLimits

/** Bytes that a project may store in a UTC day. Beyond is `quota_exceeded`, as for mails; a reason does not override it. */
export interface ByteLimits {
  readonly max_bytes_per_day: number
  readonly max_inbound_bytes_per_day: number
}

/** Also mails that a project may forward in a UTC day. They count against the plan's mails as well. */
export interface DailyLimits extends ByteLimits {
  readonly max_forwards_per_day: number
}

export type PlanLimitName = 'max_domains' | 'max_users'

/** A limit that was or would be exceeded. */
export interface LimitException {
  limit: CapName | PlanLimitName
  value: number
  /** The count including the new resource. */
  count: number
}

export const beyond = (
  limit: LimitException['limit'],
  value: number,
  count: number,
): LimitException | null => (count > value ? { limit, value, count } : null)

/** The same for the resources of a project, including the new one. */
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
    `${allows(limit)} ${value} (${limit}); this would be number ${count}. ${remedy}`,
  )
