import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { recountOf, scoreOf, type WeekOfMail } from './score.ts'

const week = (changes: Partial<WeekOfMail>): WeekOfMail => ({
  ...{ sent: 0, delivered: 0, bounced: 0, failed: 0, complained: 0 },
  ...changes,
})

const examples: [about: string, week: Partial<WeekOfMail>, score: number][] = [
  ['no mail at all', {}, 100],
  ['49 messages, all bounced (below the minimum)', { sent: 49, bounced: 49 }, 100],
  ['50 messages, all bounced', { sent: 50, bounced: 50 }, 0],
  ['one bounce in 50 (2 %, within the tolerance)', { sent: 50, bounced: 1 }, 100],
  ['two bounces in 50 (4 %)', { sent: 50, bounced: 2 }, 75],
  ['bounces at 2 %', { sent: 10_000, bounced: 200 }, 100],
  ['bounces at 3 %', { sent: 10_000, bounced: 300 }, 88],
  ['bounces at 6 %', { sent: 10_000, bounced: 600 }, 50],
  ['bounces at 10 %', { sent: 10_000, bounced: 1000 }, 0],
  ['bounces at 40 %', { sent: 10_000, bounced: 4000 }, 0],
  ['100 messages rejected before they were sent', { bounced: 100 }, 0],
  ['complaints at 0.1 %', { sent: 10_000, complained: 10 }, 100],
  ['complaints at 0.2 %', { sent: 10_000, complained: 20 }, 75],
  ['complaints at 0.3 %', { sent: 10_000, complained: 30 }, 50],
  ['complaints at 0.5 %', { sent: 10_000, complained: 50 }, 0],
  ['one complaint about 50 messages (measured against 500)', { sent: 50, complained: 1 }, 75],
  ['five complaints about 50 messages', { sent: 50, complained: 5 }, 0],
  ['failures at 10 %', { sent: 1000, failed: 100 }, 100],
  ['failures at 30 %', { sent: 1000, failed: 300 }, 75],
  ['failures at 100 % (capped at 50 points)', { sent: 1000, failed: 1000 }, 50],
  ['bounces at 4 % and complaints at 0.2 %', { sent: 10_000, bounced: 400, complained: 20 }, 50],
  ['the worst rates of all three', { sent: 1000, bounced: 500, failed: 500, complained: 100 }, 0],
]

describe('the score', () => {
  for (const [about, figures, score] of examples) {
    test(`of ${about} is ${score}`, () => assert.equal(scoreOf(week(figures)), score))
  }

  test('is an integer from 0 to 100 that is never raised by a further bounce, failure or complaint', () => {
    for (let sent = 0; sent <= 2000; sent += 37) {
      for (const kind of ['bounced', 'failed', 'complained'] as const) {
        let last = 100
        for (let count = 0; count <= sent; count += 3) {
          const score = scoreOf(week({ sent, [kind]: count }))
          assert.ok(Number.isInteger(score) && score >= 0 && score <= last, `${sent} ${kind} ${count}`)
          last = score
        }
      }
    }
  })

  test('is recomputed later if it can change over time', () => {
    assert.equal(recountOf(week({ sent: 1000, delivered: 990 })), 'never')
    assert.equal(recountOf(week({ sent: 1000, bounced: 1 })), 'tomorrow')
    assert.equal(recountOf(week({ sent: 1000, bounced: 100 })), 'soon')
    assert.equal(
      recountOf(week({ sent: 20, bounced: 10 })),
      'soon',
      '30 more messages reach the minimum volume',
    )
  })
})
