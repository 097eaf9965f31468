import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { LaneKey } from './lanes.sql.ts'
import { Slots } from './slots.ts'

const lane = (project_id: number): LaneKey => ({ shard: 1, project_id, provider: 'service', is_large: false })
const large = (project_id: number): LaneKey => ({ ...lane(project_id), is_large: true })

/** Takes whatever it may, as if no mail of it ever came to an end. */
function fill(places: Slots, one: LaneKey, ofProvider: number): number {
  let taken = 0
  for (let room = places.roomFor(one, ofProvider); room > 0; room = places.roomFor(one, ofProvider)) {
    for (; room > 0; room--, taken++) places.take(one)
  }
  return taken
}

describe('places', () => {
  test('a lane by itself has most of them, and never all', () => {
    const places = new Slots(50)
    assert.equal(fill(places, lane(1), 1000), 40)
    assert.equal(places.free, 10)
  })

  test('what counts is what the provider can have, where that is less', () => {
    const places = new Slots(50)
    assert.equal(fill(places, lane(1), 20), 16)
    assert.equal(places.roomFor(lane(2), 20), 3)
    assert.equal(places.roomFor({ ...lane(1), provider: 'ses' }, 1000), 27)
  })

  test('two lanes that never end a mail leave room for a third', () => {
    const places = new Slots(50)
    for (const id of [1, 2]) fill(places, lane(id), 1000)
    assert.ok(places.roomFor(lane(3), 1000) > 0)
  })

  test('the last place is for a lane that has none', () => {
    const places = new Slots(2)
    places.take(lane(1))
    assert.equal(places.roomFor(lane(1), 2), 0)
    assert.equal(places.roomFor(lane(2), 2), 1)
  })

  test('two large mails are under way at once, of different projects, and small ones beside them', () => {
    const places = new Slots(50)
    assert.equal(fill(places, large(1), 1000), 1)
    assert.equal(places.freeLarge, 1)
    assert.equal(fill(places, large(2), 1000), 1)
    assert.equal(fill(places, large(3), 1000), 0)
    assert.ok(places.roomFor(lane(1), 1000) > 0)
    places.leave(large(1))
    assert.equal(fill(places, large(3), 1000), 1)
  })

  test('a place that is left is free again', () => {
    const places = new Slots(1)
    places.take(lane(1))
    assert.equal(places.roomFor(lane(1), 1), 0)
    places.leave(lane(1))
    assert.equal(places.roomFor(lane(1), 1), 1)
  })
})
