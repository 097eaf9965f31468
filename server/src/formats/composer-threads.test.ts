import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dkimResult, makeDkimPair } from '../testing/fixtures/dkim.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { ComposerThreads, type ComposeTask, makeMime } from './composer-threads.ts'
import type { Content } from './content.ts'

const { key, record } = makeDkimPair()
const order = (subject: string): ComposeTask => ({
  content: {
    from: { name: 'Ada', address: 'ada@example.com' },
    to: [{ name: null, address: 'bob@example.org' }],
    cc: [],
    reply_to: [],
    subject,
    text: 'Hello',
    html: '<p>Hello</p>',
    headers: [],
    attachments: [],
  },
  composition: {
    messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b',
    domain: 'example.com',
    date: new Date(0),
  },
  key: null,
})

const composers = new ComposerThreads({ threads: 2 })
cleanUp(() => composers.close())

test('threads produce the same messages and signatures as the calling thread', async () => {
  const subjects = Array.from({ length: 50 }, (_, n) => `Mail ${n}`)
  const made = await Promise.all(subjects.map((subject) => composers.make(order(subject))))
  for (const [n, subject] of subjects.entries()) assert.deepEqual(made[n], await makeMime(order(subject)))
  const signed = await composers.make({ ...order('Signed'), key })
  assert.equal(await dkimResult(signed, record), 'pass')
})

test('a message that cannot be composed does not affect others', async () => {
  const { content } = order('Bad')
  const headers = [{ name: 'Bcc', value: 'x@example.com' }]
  const bad = { ...order('Bad'), content: { ...content, headers } as Content }
  const [refused, good] = await Promise.allSettled([composers.make(bad), composers.make(order('Good'))])
  assert.match(String(refused.status === 'rejected' && refused.reason), /not checked/)
  assert.equal(good.status, 'fulfilled')
})

test('without threads the caller composes, and after closing nothing is composed', async () => {
  const none = new ComposerThreads({ threads: 0 })
  assert.deepEqual(await none.make(order('x')), await makeMime(order('x')))
  await none.close()
  await assert.rejects(none.make(order('x')), /closed/)

  const ended = new ComposerThreads({ threads: 1 })
  await ended.make(order('x'))
  const waiting = Promise.allSettled(Array.from({ length: 20 }, () => ended.make(order('y'))))
  await ended.close()
  for (const { status } of await waiting) assert.equal(status, 'rejected')
})
