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

test('rows that are watched are untouched until something is written, and be it the same again', async () => {
  const acts: [string, () => Promise<unknown>][] = [
    ['a new row', () => addUser('bob')],
    ['the same again', () => database.query('update control.users set name = name')],
    ['one less', () => database.query(`delete from control.users where name = 'bob'`)],
    ['one for another', () => database.query(`delete from control.users`).then(() => addUser('cy'))],
    ['the last of a table', () => database.query('delete from control.users')],
    ['the first', () => addUser('dan')],
  ]
  for (const [what, act] of acts) {
    const rows = await watchRows(database)
    await rows.assertUntouched(what)
    await act()
    await assert.rejects(rows.assertUntouched(what), { name: 'AssertionError' }, what)
  }
})
