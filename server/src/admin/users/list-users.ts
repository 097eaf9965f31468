import Type from 'typebox'
import { searchUsers, userView } from '../../core/control/users/users.ts'
import { User } from '../../core/control/users/wire.ts'
import { PageQuery, pageOf, scanPage, searchOf } from '../../core/shared/pages.ts'
import { oneOf } from '../../core/shared/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listUsersQuery = adminQuery({
  id: 'users.list',
  path: '/admin/users',
  summary: 'List users',
  description: 'All users, newest first. Filters can be combined.',
  params: NoParams,
  query: {
    ...PageQuery,
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Part of the address or name, case-insensitive.',
      }),
    ),
    role: Type.Optional(oneOf(['user', 'admin'], { description: 'Only users with this role.' })),
    is_active: Type.Optional(
      Type.Boolean({ description: 'True: only users who can sign in. False: only users who cannot.' }),
    ),
  },
  answer: searchOf(User),
  async run({ db, query }) {
    const { limit, lastId } = pageOf(query)
    const wanted = { q: query.q, role: query.role, isActive: query.is_active, limit, beforeId: lastId }
    const found = await db.read((tx) => searchUsers(tx, wanted))
    return { answer: scanPage(found, userView) }
  },
})
