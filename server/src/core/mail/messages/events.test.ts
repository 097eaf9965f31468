import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { storable, writeEvents, writeRecipientEvents } from './events.ts'

const database = await testDatabase()
const db = openDatabase(database).as('mail')

const messageId = '01990000-0000-7000-8000-000000000001'

describe('mail events', () => {
  test('are written in one statement, each with an id close to the transaction time', async () => {
    await db.transaction((tx) =>
      writeEvents(
        tx,
        Array.from({ length: 100 }, (_, n) => ({
          ...{ projectId: 1 + (n % 3), type: 'message.sent' as const, messageId, recipientNo: n },
          data: { n, text: '"quoted", {braced}, \\ and \u{1f4ee}' },
        })),
      ),
    )
    const rows = await database.query<{ project: number; data: unknown; is_now: boolean }>(
      `select project_id::int as project, data,
              id between postern.uuid7_floor(created_at)
                     and postern.uuid7_floor(created_at + interval '101 ms') as is_now
         from mail.events order by recipient_no`,
    )
    assert.deepEqual(
      rows,
      Array.from({ length: 100 }, (_, n) => ({
        project: 1 + (n % 3),
        data: { n, text: '"quoted", {braced}, \\ and \u{1f4ee}' },
        is_now: true,
      })),
    )
  })

  test('of one recipient keep their order', async () => {
    const one = { projectId: 9, messageId, recipient: 'a@example.net', status: null, diagnostic: null }
    for (let n = 0; n < 20; n++) {
      await db.transaction((tx) =>
        writeRecipientEvents(tx, [
          { ...one, recipientNo: n, type: 'message.sent' },
          { ...one, recipientNo: n, type: 'message.delivered' },
        ]),
      )
    }
    const rows = await database.query<{ types: string[] }>(
      `select array_agg(type order by id) as types from mail.events where project_id = 9 group by recipient_no`,
    )
    assert.equal(rows.length, 20)
    for (const { types } of rows) assert.deepEqual(types, ['message.sent', 'message.delivered'])
  })

  test('store any text that a mail server can return', async () => {
    const said = `550 5.1.1 <a@b>\0: \ud800 ${'x'.repeat(5000)}`
    await db.transaction((tx) =>
      writeRecipientEvents(tx, [
        {
          ...{ projectId: 10, messageId, recipientNo: 0, type: 'message.bounced', recipient: 'a@b' },
          ...{ status: '5.1.1', diagnostic: said },
        },
      ]),
    )
    const [row] = await database.query<{ data: { diagnostic: string } }>(
      'select data from mail.events where project_id = 10',
    )
    assert.equal(row?.data.diagnostic, storable(said))
    assert.match(storable(said), /^550 5\.1\.1 <a@b>\ufffd: \ufffd x+$/)
    assert.equal(storable(said).length, 2000)
  })

  test('write nothing for an empty list', async () => {
    await db.transaction((tx) => writeEvents(tx, []))
  })
})
