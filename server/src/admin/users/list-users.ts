import Type from 'typebox'
import { listUsers, userView } from '../../core/users/users.ts'
import { User } from '../../core/users/wire.ts'
import { adminQuery } from '../operation.ts'
import { listed, listOf, PageQuery, pageOf } from '../page.ts'
import { NoParams } from '../parameters.ts'

export const listUsersQuery = adminQuery({
  id: 'users.list',
  path: '/admin/users',
  summary: 'List users',
  description: 'Everybody with an account, newest first.',
  params: NoParams,
  query: {
    ...PageQuery,
    q: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: 'Part of the address or name.' }),
    ),
  },
  answer: listOf(User),
  async run({ db, query }) {
    const page = pageOf(query)
    const beforeId = page.lastId ?? Number.MAX_SAFE_INTEGER
    const fetch = (limit: number) => db.read((tx) => listUsers(tx, { q: query.q, limit, beforeId }))
    return { answer: await listed(page, fetch, userView) }
  },
})
