import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** A large request is read in a worker thread and gets the same response as a small one. */
const database = await testDatabase()
const api = await startApi(database)
const { makeSender } = senders(api, database, await signedIn(api))
const reads = mock.method(api.context.bodyReader, 'read').mock

const sender = await makeSender()

const mebibyte = 1024 * 1024
/** Trailing white space makes any body large and changes nothing else. */
const largely = (body: Buffer): Buffer => Buffer.concat([body, Buffer.alloc(mebibyte + 1, ' ')])

interface Asked {
  body: string | Buffer
  path?: string
  headers?: Record<string, string>
}

async function ask({ body, path = '/messages', headers = {} }: Asked) {
  const response = await fetch(`${api.url}/v1${path}`, {
    method: 'POST',
    headers: { ...sender.program.headers, 'content-type': 'application/json', ...headers },
    body: Buffer.from(body),
  })
  const text = await response.text()
  return { status: response.status, text, isReplayed: response.headers.get('idempotent-replayed') === 'true' }
}

/** The response without the values that differ between requests. */
const likeness = ({ status, text }: { status: number; text: string }): string =>
  `${status} ${text.replace(/"id":"[^"]+"/g, '"id":""').replace(/"created_at":"[^"]+"/g, '"created_at":""')}`

const message = { from: `Shop <hello@${sender.domain.name}>`, to: ['b@example.net'], subject: 's', text: 't' }
const changed = (changes: object): string => JSON.stringify({ ...message, ...changes })
const addresses = (count: number) => Array.from({ length: count }, (_, no) => `r${no}@example.net`)
const batch = (...messages: unknown[]): Asked => ({
  path: '/messages/batch',
  body: JSON.stringify({ messages }),
})

const requests: Record<string, Asked & { status: number }> = {
  'a message': { status: 202, body: changed({}) },
  'a message with everything': {
    status: 202,
    body: changed({
      cc: ['c@example.net'],
      subject: 'Grüße, мир 🌍',
      html: '<p>ü</p>',
      headers: { 'X-Order': '7' },
      attachments: [{ filename: 'a.bin', content: 'AAAA' }],
      tags: ['order'],
      metadata: { order: '7' },
      send_at: new Date(Date.now() + 3600_000).toISOString(),
    }),
  },
  'a text that looks like many values': { status: 202, body: changed({ text: '",[{\\'.repeat(60_000) }) },
  'a byte order mark': { status: 202, body: `\ufeff${changed({})}` },
  'invalid JSON': { status: 400, body: `${changed({})}}` },
  'truncated JSON': { status: 400, body: '{"from":"' },
  'only white space': { status: 400, body: ' ' },
  'invalid UTF-8': { status: 400, body: Buffer.from('{"from":"\xff"}', 'latin1') },
  'another charset': {
    status: 415,
    body: changed({}),
    headers: { 'content-type': 'application/json; charset=latin1' },
  },
  'a member named __proto__': { status: 400, body: '{"__proto__":{"from":"a"}}' },
  'a member named constructor': { status: 400, body: '{"constructor":{"prototype":{}}}' },
  null: { status: 422, body: 'null' },
  'a list': { status: 422, body: '[]' },
  'a text': { status: 422, body: '"text"' },
  'a long list': { status: 422, body: changed({ to: addresses(1001) }) },
  'many values': {
    status: 422,
    body: JSON.stringify({ to: Array.from({ length: 900 }, () => Array(70).fill(0)) }),
  },
  'many empty objects': { status: 422, body: `{"to":[${'{},'.repeat(200_000)}{}]}` },
  'many levels': { status: 422, body: `${'['.repeat(200_000)}${']'.repeat(200_000)}` },
  'unknown and missing fields, and wrong types': {
    status: 422,
    body: '{"from":7,"to":"b@example.net","unknown":1,"tags":["a b"],"text":[]}',
  },
  'more errors than are reported': {
    status: 422,
    body: JSON.stringify(Object.fromEntries(addresses(50).map((name) => [name, 1]))),
  },
  'a NUL': { status: 422, body: changed({ text: 'a\0b' }) },
  'half of a surrogate pair': { status: 422, body: changed({}).replace('"t"', '"\\ud800"') },
  'a bad address': { status: 422, body: changed({ to: ['b@'] }) },
  'a bad sender': { status: 422, body: changed({ from: 'nobody' }) },
  'too many recipients': { status: 422, body: changed({ to: addresses(51) }) },
  'no text': { status: 422, body: changed({ text: null }) },
  'a bad header': { status: 422, body: changed({ headers: { From: 'x' } }) },
  'a bad attachment': { status: 422, body: changed({ attachments: [{ filename: 'a', content: '!' }] }) },
  'a bad time': { status: 422, body: changed({ send_at: 'tomorrow' }) },
  'a domain of another project': { status: 403, body: changed({ from: 'a@example.com', to: [] }) },
  'a broken body and a bad header': { status: 400, body: '{', headers: { 'idempotency-key': 'a b' } },
  'many values and a bad header': {
    status: 422,
    body: changed({ to: addresses(1001) }),
    headers: { 'idempotency-key': 'a b' },
  },
  'a wrong body and a bad header': { status: 400, body: '{"from":7}', headers: { 'idempotency-key': 'a b' } },
  'a wrong body and a wrong query': { status: 400, body: '{"from":7}', path: '/messages?unknown=1' },
  'a good body and a wrong query': { status: 400, body: changed({}), path: '/messages?unknown=1' },
  'a batch': { status: 202, ...batch(message, { ...message, to: addresses(3) }) },
  'a batch with bad items': {
    status: 202,
    ...batch(
      message,
      { to: 7 },
      null,
      'x',
      [],
      { ...message, tags: ['a b'] },
      { ...message, to: ['b@'] },
      {
        ...message,
        from: 'a@example.com',
      },
    ),
  },
  'an empty batch': { status: 422, ...batch() },
  'a batch of 501': { status: 422, ...batch(...addresses(501).map(() => 0)) },
  'a batch of 500': {
    status: 202,
    ...batch(...addresses(500).map((address) => ({ ...message, to: [address] }))),
  },
}

describe('a request that is read in a thread gets the response of one that is not', () => {
  for (const [what, { status, ...asked }] of Object.entries(requests)) {
    test(what, async () => {
      const before = reads.callCount()
      const small = await ask(asked)
      assert.equal(reads.callCount(), before)
      const large = await ask({ ...asked, body: largely(Buffer.from(asked.body)) })
      assert.equal(large.status, status, large.text)
      assert.equal(likeness(large), likeness(small))
      assert.equal(reads.callCount(), before + (status === 415 ? 0 : 1))
    })
  }

  test('and stores the same content', async () => {
    const contentOf = async ({ text }: { text: string }) => {
      const [row] = await database.query<{ content: Buffer }>(
        'select content from mail.bodies where message_id = $1',
        [JSON.parse(text).id],
      )
      return row?.content.toString()
    }
    // Short content is copied between threads; long content is transferred.
    for (const text of ['мир', 'мир '.repeat(50_000)]) {
      const body = changed({ text })
      const [small, large] = [await ask({ body }), await ask({ body: largely(Buffer.from(body)) })]
      assert.equal(await contentOf(large), await contentOf(small))
      assert.match((await contentOf(large)) ?? '', /мир/)
    }
  })

  test('even for 35 MiB of empty objects, which would exceed the memory', async () => {
    const small = await ask({ body: `{"to":[${'{},'.repeat(100_000)}{}]}` })
    const large = await ask({ body: `{"to":[${'{},'.repeat(12_000_000)}{}]}` })
    assert.equal(likeness(large), likeness(small))
  })
})

describe('an Idempotency-Key', () => {
  const reordered = (body: object): string =>
    JSON.stringify(Object.fromEntries(Object.entries(body).reverse()), undefined, 2)

  for (const { path, body } of [
    { path: '/messages', body: message as object },
    { path: '/messages/batch', body: { messages: [message, { to: 7 }] } },
  ]) {
    test(`of a large request returns the stored response, for a large repetition and for a small one with fields in another order: ${path}`, async () => {
      const headers = { 'idempotency-key': `large first ${path}`.replaceAll(' ', '-') }
      const large = { path, headers, body: largely(Buffer.from(JSON.stringify(body))) }
      const first = await ask(large)
      assert.deepEqual([first.status, first.isReplayed], [202, false], first.text)
      for (const again of [large, { path, headers, body: reordered(body) }]) {
        assert.deepEqual(await ask(again), { ...first, isReplayed: true })
      }
      const other = JSON.stringify({
        ...body,
        ...(path === '/messages' ? { subject: 'x' } : { messages: [{}] }),
      })
      for (const reused of [Buffer.from(other), largely(Buffer.from(other))]) {
        assert.equal((await ask({ path, headers, body: reused })).status, 422)
      }
    })

    test(`of a small request returns the stored response for a large repetition: ${path}`, async () => {
      const headers = { 'idempotency-key': `small-first-${path}` }
      const first = await ask({ path, headers, body: JSON.stringify(body) })
      const large = await ask({ path, headers, body: largely(Buffer.from(reordered(body))) })
      assert.deepEqual(large, { ...first, isReplayed: true })
    })
  }
})
