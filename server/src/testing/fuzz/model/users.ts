import type { Chance } from '../../harness/random.ts'
import { absentId } from '../draw.ts'
import type { Intent } from './intent.ts'
import { timeFrom } from './unknown.ts'
import { findById, type View, type World } from './world.ts'

/**
 * Changes to this sequence's users. The actor always stays an administrator, so none of these users is the last
 * administrator.
 */
export function editUser(world: World, chance: Chance): Intent {
  const id = chance.happens(0.05) ? absentId(chance) : chance.pick(world.users).id
  const target = findById(world.users, id) ?? null
  const body: View = {
    ...(chance.happens(0.4) ? { role: chance.pick(['user', 'user', 'admin']) } : {}),
    ...(chance.happens(0.3) ? { rights: chance.pick(['full', 'support', 'billing', 'auditor']) } : {}),
    ...(chance.happens(0.4) ? { is_active: chance.happens(0.75) } : {}),
    ...(chance.happens(0.2) ? { end_sessions: chance.happens(0.5) } : {}),
  }
  return {
    operation: 'users.edit',
    params: { id },
    body,
    exists: () => target !== null,
    target,
    outcome() {
      if (!target) return 'not_found'
      const before = target.view
      const { end_sessions: ends = false, ...given } = body
      const isAdmin = (given['role'] ?? before['role']) === 'admin'
      if (!isAdmin && given['rights'] !== undefined) return 'validation_failed'
      const rights = isAdmin ? (given['rights'] ?? before['rights'] ?? 'full') : null
      const changes = { ...given, rights }
      const isChanged =
        ends === true || Object.entries(changes).some(([name, value]) => before[name] !== value)
      const after = isChanged ? { ...before, ...changes, updated_at: timeFrom(before['updated_at']) } : before
      return {
        change: isChanged ? { type: 'user', before, after: { ...before, ...changes } } : null,
        response: after,
        version: target.version + (isChanged ? 1 : 0),
        commit(view: View) {
          if (isChanged) target.version++
          target.view = view
          return { acts: target.acts, id }
        },
      }
    },
  }
}
