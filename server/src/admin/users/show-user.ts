import { findUser, userView } from '../../core/control/users/users.ts'
import { User } from '../../core/control/users/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showUser = adminQuery({
  id: 'users.show',
  path: '/admin/users/:id',
  summary: 'Show a user',
  description: "One user. The `ETag` is the user's version.",
  params: ItemParams,
  query: {},
  answer: User,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findUser(tx, params.id))
    return { answer: userView(row), version: row.version }
  },
})
