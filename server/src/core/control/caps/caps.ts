/**
 * Caps limit how many resources of each kind a project or user can have if the plan does not limit them. Each cap has a
 * setting. A customer's request that would exceed a cap is rejected with `limit_exceeded`. An administrator can exceed a cap
 * with a reason. docs/operations/limits.md lists the caps together with the plan's limits.
 */
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type CountedLimit, countAll, countOf, countProjectsOf } from './caps.sql.ts'

export { countAll, countProjectsOf }

export const capTable = {
  max_endpoints: {
    setting: 'POSTERN_MAX_ENDPOINTS',
    default: 20,
    about: 'Endpoints per project.',
  },
  max_routes: {
    setting: 'POSTERN_MAX_ROUTES',
    default: 1_000,
    about: 'Routes per project.',
  },
  max_api_keys: {
    setting: 'POSTERN_MAX_API_KEYS',
    default: 100,
    about: 'API keys per project.',
  },
  max_pending_invitations: {
    setting: 'POSTERN_MAX_PENDING_INVITATIONS',
    default: 50,
    about: 'Pending invitations per project.',
  },
  max_invitations_per_project_per_day: {
    setting: 'POSTERN_MAX_INVITATIONS_PER_PROJECT_PER_DAY',
    default: 50,
    about: 'Invitations per project per UTC day.',
  },
  max_invitations_per_user_per_day: {
    setting: 'POSTERN_MAX_INVITATIONS_PER_USER_PER_DAY',
    default: 50,
    about: 'Invitations per customer per UTC day, across all projects.',
  },
  max_invitations_per_address_per_day: {
    setting: 'POSTERN_MAX_INVITATIONS_PER_ADDRESS_PER_DAY',
    default: 5,
    about: 'Invitations to one address per UTC day, across all projects.',
  },
  max_suppressions: {
    setting: 'POSTERN_MAX_SUPPRESSIONS',
    default: 100_000,
    about: 'Manual suppressions per project. Suppressions from bounces and complaints do not count.',
  },
  max_platform_suppressions: {
    setting: 'POSTERN_MAX_PLATFORM_SUPPRESSIONS',
    default: 100_000,
    about: 'Platform-wide suppressions. Administrators cannot exceed this cap.',
  },
  max_projects_per_owner: {
    setting: 'POSTERN_MAX_PROJECTS_PER_OWNER',
    default: 20,
    about: 'Projects per owner.',
  },
  max_dkim_rotations_per_day: {
    setting: 'POSTERN_MAX_DKIM_ROTATIONS_PER_DAY',
    default: 10,
    about: 'DKIM key rotations per domain per UTC day.',
  },
  max_dkim_keys_per_day: {
    setting: 'POSTERN_MAX_DKIM_KEYS_PER_DAY',
    default: 200,
    about: 'DKIM keys per project per UTC day, created by adding, editing and rotating domains.',
  },
} as const

export type CapName = keyof typeof capTable
/** Caps on resources in a project's control tables. */
export type ProjectCapName = Extract<CapName, CountedLimit>
export type Caps = Readonly<Record<CapName, number>> & DailyLimits

/**
 * Bytes stored per UTC day per project. A request that would exceed this cap is rejected with `quota_exceeded`, like one
 * that would exceed the message quota, even if a reason is specified.
 */
export interface ByteLimits {
  readonly max_bytes_per_day: number
  readonly max_inbound_bytes_per_day: number
}

/**
 * Also limits forwarded messages per UTC day per project. Forwarded messages count against the plan's message quota as well.
 */
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

/** Checks whether a project can have one more resource. */
export const projectBeyond = async (
  tx: ReadTx,
  caps: Caps,
  limit: ProjectCapName,
  projectId: number,
): Promise<LimitException | null> => beyond(limit, caps[limit], await countOf(tx, limit, projectId))

const allows = (limit: LimitException['limit']): string =>
  limit in capTable ? 'This installation allows' : 'The current plan allows'

/** `remedy`: a sentence that tells the caller how to proceed. */
export const limitExceeded = ({ limit, value, count }: LimitException, remedy: string): PosternError =>
  new PosternError(
    'limit_exceeded',
    `${allows(limit)} ${value} (${limit}); this would be number ${count}. ${remedy}`,
  )
