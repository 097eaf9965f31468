import Type from 'typebox'
import { recordUserActivity, system } from '../../core/control/activity/activity.ts'
import {
  countProjectsOfUser,
  editUser,
  lockUser,
  userConfig,
  userView,
} from '../../core/control/users/users.ts'
import { User } from '../../core/control/users/wire.ts'
import { countText } from '../../core/shared/counts.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'

export const editUserOperation = adminOperation({
  id: 'users.edit',
  kind: 'edit',
  path: '/admin/users/:id',
  summary: 'Edit a user',
  description:
    'Makes a user an administrator or no longer one, disables or enables them, ends their sessions and access tokens. The last active administrator with a second factor stays (`last_administrator`). Always needs a `reason`.',
  params: ItemParams,
  body: {
    role: Type.Optional(User.properties.role),
    is_active: Type.Optional(Type.Boolean()),
    end_sessions: Type.Optional(Type.Boolean({ description: 'Sign the user out everywhere.' })),
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
    // Whom it was done by, and why, is in the audit.
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
        `Projects affected: owns ${countText(owned)}, is a member of ${countText(joined)}.`,
        ...(before.role !== 'admin' && after.role === 'admin'
          ? ['The user may do everything in every project.']
          : []),
        ...(before.role === 'admin' && after.role !== 'admin'
          ? ['The user is refused every administrative operation from the next request on.']
          : []),
        ...(before.is_active && !after.is_active ? ['The user cannot sign in.'] : []),
        ...(endedSessions === null
          ? []
          : [`Sessions ended: ${endedSessions}; every access token of the user is refused.`]),
      ],
      warnings: [
        ...(before.id === actorId ? ['This is you.'] : []),
        ...(after.role === 'admin' && !after.two_factor_enabled
          ? ['The user has no second factor yet, without which an administrator gets no access token.']
          : []),
      ],
      answer: userView(after),
      version: after.version,
    }
  },
})
