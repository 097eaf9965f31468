import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

// Read when the formatters are created.
process.env['TZ'] = 'Europe/Berlin'
const { addDays, dayOf, exactTime, minuteOf, ofField, periodOf, toField, zoneName } = await import(
  './zone.ts'
)

describe('times in the viewer’s zone and in UTC', () => {
  test('name their zone, which changes with the season', () => {
    assert.equal(exactTime('2026-11-14T23:30:05.123Z', 'local'), '2026-11-15 00:30:05 CET')
    assert.equal(exactTime('2026-07-14T23:30:05.123Z', 'local'), '2026-07-15 01:30:05 CEST')
    assert.equal(exactTime('2026-07-14T23:30:05.123Z', 'utc'), '2026-07-14 23:30:05 UTC')
    assert.equal(minuteOf('2026-07-14T23:30:05Z', 'local'), '2026-07-15 01:30')
    assert.equal(zoneName('2026-07-14T00:00:00Z', 'utc'), 'UTC')
    assert.equal(dayOf('2026-07-14T23:30:05Z', 'local'), '2026-07-15')
  })

  test('of a range of days include the last day, also when the clocks change', () => {
    assert.deepEqual(periodOf({ from: '2026-03-29', to: '2026-03-29' }, 'local'), {
      from: '2026-03-28T23:00:00.000Z',
      to: '2026-03-29T22:00:00.000Z',
    })
    assert.deepEqual(periodOf({ from: '2026-10-25', to: '2026-10-25' }, 'local'), {
      from: '2026-10-24T22:00:00.000Z',
      to: '2026-10-25T23:00:00.000Z',
    })
    assert.deepEqual(periodOf({ from: '2026-12-31', to: '2026-12-31' }, 'utc'), {
      from: '2026-12-31T00:00:00.000Z',
      to: '2027-01-01T00:00:00.000Z',
    })
    assert.deepEqual(periodOf({ to: '2028-02-29' }, 'utc'), { to: '2028-03-01T00:00:00.000Z' })
    assert.deepEqual(periodOf({}, 'local'), {})
    assert.equal(addDays('2026-03-01', -1), '2026-02-28')
  })

  test('are entered in the zone of their field', () => {
    assert.equal(toField('2026-11-14T09:30:00Z', 'local'), '2026-11-14T10:30:00')
    assert.equal(toField('2026-11-14T09:30:00.000Z', 'utc'), '2026-11-14T09:30:00')
    assert.equal(ofField('2026-11-14T10:30', 'local'), '2026-11-14T09:30:00Z')
    assert.equal(ofField('2026-11-14T10:30:15', 'utc'), '2026-11-14T10:30:15Z')
    assert.equal(ofField('', 'local'), '')
    assert.equal(toField('', 'utc'), '')
    // While a year is typed, it is the year 2 first. The zones of that time differ by seconds.
    assert.equal(toField(ofField('0002-11-14T10:30:00', 'local'), 'local'), '0002-11-14T10:30:00')
  })
})
