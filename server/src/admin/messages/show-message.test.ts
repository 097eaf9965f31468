import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { assertShape, type Shape } from '../../testing/expectations/shape.ts'
import { inDays, senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makeProject } = senders(api, database, admin)

const message: Shape = [
  ['id', 'string'],
  ['project_id', 'integer'],
  ['status', 'string'],
  ['from', 'string'],
  ['subject', 'string'],
  ['recipients', 'objects'],
  ['tags', 'strings'],
  ['metadata', 'object'],
  ['size_bytes', 'integer'],
  ['is_test', 'boolean'],
  ['api_key_id', 'integer'],
  ['user_id', 'integer'],
  ['send_at', 'timestamp'],
  ['created_at', 'timestamp'],
]
const recipient: Shape = [
  ['address', 'string'],
  ['kind', 'string'],
  ['status', 'string'],
  ['diagnostic', 'string'],
  ['updated_at', 'timestamp'],
]

describe('messages.show', () => {
  test('returns a message with its recipients, without its content', async () => {
    const sender = await makeSender()
    const send_at = inDays(1)
    const id = await sender.send({
      cc: ['b@example.net'],
      bcc: ['c@example.net'],
      text: 'for your eyes alone',
      html: '<p>for your eyes alone</p>',
      attachments: [{ filename: 'secret.txt', content: 'c2VjcmV0' }],
      tags: ['order'],
      metadata: { order: '7' },
      send_at,
    })
    const { status, body, text, headers } = await admin.get(`${sender.path}/messages/${id}`)
    assert.equal(status, 200)
    assert.equal(headers.get('etag'), null)
    assertShape(body, message, ['user_id'])
    for (const one of body.recipients) assertShape(one, recipient, ['diagnostic'])
    assert.deepEqual(
      body.recipients.map(({ address, kind }: { address: string; kind: string }) => [kind, address]),
      [
        ['to', 'someone@example.net'],
        ['cc', 'b@example.net'],
        ['bcc', 'c@example.net'],
      ],
    )
    const { project_id, api_key_id, tags, metadata, is_test } = body
    assert.deepEqual(
      { project_id, api_key_id, tags, metadata, is_test, send_at: body.send_at, status: body.status },
      {
        project_id: sender.id,
        api_key_id: sender.keyId,
        tags: ['order'],
        metadata: { order: '7' },
        is_test: false,
        send_at,
        status: 'scheduled',
      },
    )
    assert.doesNotMatch(text, /eyes alone|secret|c2VjcmV0/)
  })

  test('has the status of its least advanced recipient', async () => {
    const sender = await makeSender()
    const id = await sender.send({ to: ['a@example.net', 'b@example.net'] })
    const set = (no: number, status: string) =>
      database.query('update mail.recipients set status = $3 where message_id = $1 and recipient_no = $2', [
        id,
        no,
        status,
      ])
    for (const [one, other, whole] of [
      ['queued', 'delivered', 'queued'],
      ['sent', 'delivered', 'sent'],
      ['bounced', 'delivered', 'bounced'],
      ['deferred', 'bounced', 'deferred'],
      ['delivered', 'delivered', 'delivered'],
    ] as const) {
      await set(0, one)
      await set(1, other)
      assert.equal((await admin.get(`${sender.path}/messages/${id}`)).body.status, whole)
    }
  })

  test("returns the same 404 for another project's message as for a missing one", async () => {
    const [sender, other] = [await makeSender(), await makeProject()]
    const id = await sender.send()
    const none = '00000000-0000-7000-8000-000000000000'
    for (const below of ['', '/events']) {
      const foreign = await admin.get(`/projects/${other.id}/messages/${id}${below}`)
      assertProblem(foreign, 404, 'not_found')
      const absent = await admin.get(`/projects/${other.id}/messages/${none}${below}`)
      assert.equal(absent.text.replace(none, id), foreign.text)
    }
  })
})

describe('messages.events', () => {
  test("returns one message's events in chronological order", async () => {
    const sender = await makeSender()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'gone@example.net', 'manual')`,
      [sender.id],
    )
    const id = await sender.send({ to: ['a@example.net', 'gone@example.net'] })
    await sender.send()
    const { status, body } = await admin.get(`${sender.path}/messages/${id}/events`)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['data'])
    assert.deepEqual(
      body.data.map((event: { type: string; recipient: string | null; message_id: string }) => [
        event.type,
        event.recipient,
        event.message_id,
      ]),
      [
        ['message.accepted', null, id],
        ['message.suppressed', 'gone@example.net', id],
      ],
    )
    for (const event of body.data) {
      assertShape(
        event,
        [
          ['id', 'string'],
          ['type', 'string'],
          ['message_id', 'string'],
          ['recipient', 'string'],
          ['data', 'object'],
          ['created_at', 'timestamp'],
        ],
        event.recipient === null ? ['recipient'] : [],
      )
    }
  })
})
