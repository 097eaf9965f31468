import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RecurringSearch } from './recurring-search.ts'

/** A search whose runs take a given time on a clock of its own. */
function searchOf(everyMs: number) {
  const clock = { now: 0, tookMs: 0, fails: false }
  const search = new RecurringSearch(
    everyMs,
    async () => {
      clock.now += clock.tookMs
      if (clock.fails) throw new Error('the database is away')
    },
    () => clock.now,
  )
  /** Runs the search, and returns the time from its start until it is due again. */
  const interval = async (tookMs: number): Promise<number> => {
    const startedAt = clock.now
    clock.tookMs = tookMs
    await search.run().catch(() => {})
    while (!search.isDue()) clock.now++
    return clock.now - startedAt
  }
  return { clock, search, interval }
}

describe('a recurring search', () => {
  it('is due at the start, and then at its interval', async () => {
    const { search, interval } = searchOf(250)
    assert.equal(search.isDue(), true)
    assert.equal(await interval(1), 250)
    assert.equal(await interval(12), 250)
  })

  it('takes at most a twentieth of the time, but is due after ten seconds', async () => {
    const { interval } = searchOf(250)
    assert.equal(await interval(92), 1840)
    assert.equal(await interval(2_000), 10_000)
    assert.equal(await interval(15_000), 15_000)
    assert.equal(await interval(1), 250)
  })

  it('is not delayed by a search that failed', async () => {
    const { clock, interval } = searchOf(250)
    clock.fails = true
    assert.equal(await interval(100), 250)
  })

  it('keeps an interval that is longer', async () => {
    const { interval } = searchOf(60_000)
    assert.equal(await interval(92), 60_000)
  })
})
