import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { enhancedStatusOf, replyCodeOf, replyText } from './enhanced-status.ts'

test('the enhanced status is found after the reply code in the formats that MTAs use', () => {
  for (const [reply, status] of [
    ['250 2.0.0 Ok: queued as 4Xb', '2.0.0'],
    ['550 5.1.1 <a@example.com>: Recipient address rejected: User unknown', '5.1.1'],
    ['550-5.1.1 The email account that you tried to reach does not exist.\n550 5.1.1 Learn more', '5.1.1'],
    ['452-4.2.2 The recipient is over quota', '4.2.2'],
    ['550 #5.1.0 Address rejected.', '5.1.0'],
    ['550 (#5.1.1) no such user', '5.1.1'],
    ['sorry, no mailbox here by that name. (#5.1.1)', '5.1.1'],
    ['smtp; 550 5.7.26 Unauthenticated email', '5.7.26'],
    ['smtp;554 5.4.14 Hop count exceeded', '5.4.14'],
    ['550 5.1.10 RESOLVER.ADR.RecipientNotFound; not found', '5.1.10'],
    ['5.2.2 (over quota)', '5.2.2'],
    ['550 No such user', null],
    ['550 4.1.1 who is right?', null],
    ['550 5.1 short', null],
    ['550 5.1.1.1 an address', null],
    ['550 9.1.1', null],
    ['from 5.1.1 in the midst of it', null],
    ['', null],
  ] as const) {
    assert.equal(enhancedStatusOf(reply), status, reply)
  }
})

test('the reply code is parsed at the beginning of a reply', () => {
  assert.equal(replyCodeOf('550 5.1.1 x'), 550)
  assert.equal(replyCodeOf('421-later\n421 now'), 421)
  assert.equal(replyCodeOf('smtp; 452 4.2.2'), 452)
  assert.equal(replyCodeOf('250'), 250)
  assert.equal(replyCodeOf('no digits, 1234 and 5505'), null)
})

test('a reply is stored as one line', () => {
  assert.equal(replyText('550-5.1.1 a\r\n550 5.1.1 b\0\x1b[31m'), '550-5.1.1 a 550 5.1.1 b [31m')
  assert.equal(replyText('x'.repeat(1e6)).length, 1000)
})

test('any text is parsed quickly', (t) => {
  const chance = new Chance(seed)
  const pieces = ['5', '50', '550', '.', '5.1.1', ' ', '-', '#', '(', ';', ':', '\n', '\t', 'x', '999']
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 100_000)
  const quickness = new ParserTiming()
  const read = (text: string) =>
    quickness.of(text, () => [enhancedStatusOf(text), replyCodeOf(text)] as const)
  for (let n = 0; n < count; n++) {
    const text = Array.from({ length: chance.below(12) }, () => chance.pick(pieces)).join('')
    const [status] = read(text)
    if (status !== null) assert.match(status, /^[245]\.\d{1,3}\.\d{1,3}$/)
  }
  for (const piece of pieces) read(piece.repeat(1e6))
  t.diagnostic(`${count} texts, ${quickness}, seed ${chance.seed}`)
})
