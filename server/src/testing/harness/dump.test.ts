import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from './database.ts'
import { watchRows } from './dump.ts'

const database = await testDatabase()
const addUser = (name: string) =>
  database.query(`insert into control.users (email, name, role) values ($1 || '@example.org', $1, 'user')`, [
    name,
  ])
await addUser('ada')

test('assertUntouched fails after any write, including an update that changes no value', async () => {
  const acts: [string, () => Promise<unknown>][] = [
    ['a new row', () => addUser('bob')],
    ['an update without a change', () => database.query('update control.users set name = name')],
    ['a deleted row', () => database.query(`delete from control.users where name = 'bob'`)],
    [
      'one row replaced by another',
      () => database.query(`delete from control.users`).then(() => addUser('cy')),
    ],
    ['the last row deleted', () => database.query('delete from control.users')],
    ['the first row', () => addUser('dan')],
  ]
  for (const [what, act] of acts) {
    const rows = await watchRows(database)
    await rows.assertUntouched(what)
    await act()
    await assert.rejects(rows.assertUntouched(what), { name: 'AssertionError' }, what)
  }
})
