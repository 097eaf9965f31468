import Type from 'typebox'
import { recordUserActivity, system } from '../../core/control/activity/activity.ts'
import {
  countProjectsOfUser,
  editUser,
  lockUser,
  userConfig,
  userView,
} from '../../core/control/users/users.ts'
import { Rights, rightsOf, User } from '../../core/control/users/wire.ts'
import { countText } from '../../core/shared/counts.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'

const rightsEffects: Record<Rights, string> = {
  full: 'The user has full access to every project.',
  support: 'The user can read everything, and can restrict sending and change suppressions.',
  billing: 'The user can read everything, and can change plans and subscriptions of projects.',
  auditor: 'The user can read everything and change nothing.',
}

export const editUserOperation = adminOperation({
  id: 'users.edit',
  kind: 'edit',
  path: '/admin/users/:id',
  summary: 'Edit a user',
  description:
    "Grants or revokes the administrator role, sets an administrator's rights, enables or disables the user, and revokes the user's sessions and access tokens. A new administrator has full rights unless the request sets other `rights`. The last active administrator with full rights and two-factor authentication enabled cannot be demoted, limited or disabled (`last_administrator`). A `reason` is always required.",
  params: ItemParams,
  body: {
    role: Type.Optional(User.properties.role),
    rights: Type.Optional({ ...Rights, description: 'What the administrator can do.' }),
    is_active: Type.Optional(Type.Boolean()),
    end_sessions: Type.Optional(Type.Boolean({ description: "Revoke all of the user's sessions." })),
  },
  refusals: ['last_administrator'],
  example: { is_active: false, reason: 'Left the company' },
  answer: User,
  target: (tx, { id }) => lockUser(tx, id),
  async run({ tx, actorId, requestId, target: before, body }) {
    const edited = await editUser(tx, actorId, before, body)
    if (!edited) {
      return {
        audit: unchanged,
        effects: [],
        warnings: [],
        answer: userView(before),
        version: before.version,
      }
    }
    const { row: after, endedSessions } = edited
    // The audit log records who made the change and why.
    await recordUserActivity(tx, after.id, {
      actor: { ...system, type: 'administrator' },
      requestId,
      operation: 'users.edit',
      change: {
        ...{ resource: 'account', id: after.id, before: userConfig(before) },
        after: { ...userConfig(after), sessions_ended: endedSessions !== null },
      },
    })
    const { owned, joined } = await countProjectsOfUser(tx, after.id)
    const sessions = endedSessions === null ? null : { sessions: endedSessions }
    return {
      audit: {
        projectId: null,
        change: {
          resource: 'user',
          id: after.id,
          before: { ...userConfig(before), ...sessions },
          after: { ...userConfig(after), ...(sessions && { sessions: 0 }) },
        },
        subject: { email: after.email, name: after.name },
      },
      effects: [
        `Projects: owner of ${countText(owned)}, member of ${countText(joined)}.`,
        ...(after.role === 'admin' && rightsOf(before) !== rightsOf(after)
          ? [rightsEffects[after.rights as Rights]]
          : []),
        ...(before.role === 'admin' && after.role !== 'admin'
          ? ['The user loses access to all administrative operations immediately.']
          : []),
        ...(before.is_active && !after.is_active ? ['The user cannot sign in.'] : []),
        ...(endedSessions === null
          ? []
          : [`Sessions revoked: ${endedSessions}. All of the user's access tokens become invalid.`]),
      ],
      warnings: [
        ...(before.id === actorId ? ['This is your own account.'] : []),
        ...(after.role === 'admin' && !after.two_factor_enabled
          ? [
              'The user has not set up two-factor authentication yet. Administrators need it to get an access token.',
            ]
          : []),
      ],
      answer: userView(after),
      version: after.version,
    }
  },
})
