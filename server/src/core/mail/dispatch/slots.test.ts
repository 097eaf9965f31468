import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { LaneKey } from './lanes.sql.ts'
import { Slots } from './slots.ts'

const lane = (project_id: number): LaneKey => ({ shard: 1, project_id, provider: 'service', is_large: false })
const large = (project_id: number): LaneKey => ({ ...lane(project_id), is_large: true })

/** Takes whatever it may, as if no mail of it ever came to an end. */
function fill(places: Slots, one: LaneKey, ofProvider: number): number {
  let taken = 0
  for (let room = places.capacityFor(one, ofProvider); room > 0; room = places.capacityFor(one, ofProvider)) {
    for (; room > 0; room--, taken++) places.take(one)
  }
  return taken
}

describe('slots', () => {
  test('a single lane may use most of them, and never all', () => {
    const places = new Slots(50)
    assert.equal(fill(places, lane(1), 1000), 40)
    assert.equal(places.free, 10)
  })

  test('the limit of the provider applies, if it is smaller', () => {
    const places = new Slots(50)
    assert.equal(fill(places, lane(1), 20), 16)
    assert.equal(places.capacityFor(lane(2), 20), 3)
    assert.equal(places.capacityFor({ ...lane(1), provider: 'ses' }, 1000), 27)
  })

  test('two stuck lanes leave slots for a third', () => {
    const places = new Slots(50)
    for (const id of [1, 2]) fill(places, lane(id), 1000)
    assert.ok(places.capacityFor(lane(3), 1000) > 0)
  })

  test('the last slot is for a lane that uses none', () => {
    const places = new Slots(2)
    places.take(lane(1))
    assert.equal(places.capacityFor(lane(1), 2), 0)
    assert.equal(places.capacityFor(lane(2), 2), 1)
  })

  test('at most two large mails are in flight, of different projects, and small ones besides', () => {
    const places = new Slots(50)
    assert.equal(fill(places, large(1), 1000), 1)
    assert.equal(places.freeLarge, 1)
    assert.equal(fill(places, large(2), 1000), 1)
    assert.equal(fill(places, large(3), 1000), 0)
    assert.ok(places.capacityFor(lane(1), 1000) > 0)
    places.release(large(1))
    assert.equal(fill(places, large(3), 1000), 1)
  })

  test('a released slot is free again', () => {
    const places = new Slots(1)
    places.take(lane(1))
    assert.equal(places.capacityFor(lane(1), 1), 0)
    places.release(lane(1))
    assert.equal(places.capacityFor(lane(1), 1), 1)
  })
})
