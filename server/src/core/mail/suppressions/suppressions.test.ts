import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { suppressComplained } from './automatic.ts'
import { addSuppression, listSuppressions, removeSuppression } from './suppressions.ts'

const database = await testDatabase()
const db = openDatabase(database).as('mail')

const add = (projectId: number, address: string) =>
  db.transaction((tx) => addSuppression(tx, projectId, address))
const remove = (projectId: number, address: string) =>
  db.transaction((tx) => removeSuppression(tx, projectId, address))
const list = (projectId: number, limit = 100, after?: string) =>
  db.read((tx) => listSuppressions(tx, projectId, { limit, after }))

describe('suppressions', () => {
  test('are added once, in lower case, and do not change when they are added again', async () => {
    const first = await add(1, 'Some.One@Example.com')
    assert.equal(first.isNew, true)
    const { created_at, ...row } = first.row
    assert.deepEqual(row, { address: 'some.one@example.com', reason: 'manual', message_id: null })
    await database.query(`update mail.suppressions set reason = 'complaint'`)
    const second = await add(1, 'SOME.ONE@example.COM')
    assert.deepEqual(second, { row: { ...first.row, reason: 'complaint' }, isNew: false })
    assert.ok(created_at instanceof Date)
  })

  test('caused by a complaint cannot be removed by the project, regardless of their earlier reason', async () => {
    await add(11, 'angry@example.com')
    const messageId = '0198f2a4-7777-7000-8000-000000000001'
    const complaint = { projectId: 11, messageId, recipient: 'Angry@example.com' }
    for (const _ of [1, 2]) await db.transaction((tx) => suppressComplained(tx, [complaint]))
    await assert.rejects(remove(11, 'angry@example.com'), { code: 'insufficient_role' })
    assert.deepEqual(
      (await list(11)).map(({ reason, message_id }) => [reason, message_id]),
      [['complaint', messageId]],
    )
  })

  test('are removed by any spelling of the address, only from the specified project', async () => {
    await add(2, 'gone@example.com')
    assert.equal((await remove(2, 'GONE@example.com')).address, 'gone@example.com')
    await assert.rejects(remove(2, 'gone@example.com'), { code: 'not_found' })
    await add(3, 'here@example.com')
    await assert.rejects(remove(4, 'here@example.com'), { code: 'not_found' })
    assert.equal((await list(3)).length, 1)
  })

  test('store international addresses with the domain in A-labels', async () => {
    const { row } = await add(5, 'Грета@Bücher.example')
    assert.equal(row.address, 'грета@xn--bcher-kva.example')
    assert.equal((await remove(5, 'грета@bücher.example')).address, row.address)
  })

  test('must be valid addresses', async () => {
    for (const text of ['', 'x', 'a@b', 'a b@example.com', 'Ada <ada@example.com>', 'a@example.com\0']) {
      await assert.rejects(add(6, text), { code: 'validation_failed' }, text)
      await assert.rejects(remove(6, text), { code: 'validation_failed' }, text)
    }
  })

  test('of one project are listed by address, page by page', async () => {
    const addresses = Array.from({ length: 25 }, (_, n) => `person${String(n).padStart(2, '0')}@example.com`)
    for (const address of addresses.toReversed()) await add(7, address)
    await add(8, 'person00@example.com')
    const seen: string[] = []
    for (;;) {
      const page = await list(7, 10, seen.at(-1))
      if (page.length === 0) break
      seen.push(...page.map(({ address }) => address))
    }
    assert.deepEqual(seen, addresses)
  })

  test('that are added and removed concurrently end in one of the two states', async () => {
    await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        n % 3 === 0 ? remove(9, 'busy@example.com').catch(() => {}) : add(9, 'busy@example.com'),
      ),
    )
    assert.ok((await list(9)).length <= 1)
  })
})
