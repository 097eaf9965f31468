import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { LaneKey } from './lanes.sql.ts'
import { Slots } from './slots.ts'

const lane = (project_id: number): LaneKey => ({ shard: 1, project_id, provider: 'service', is_large: false })
const large = (project_id: number): LaneKey => ({ ...lane(project_id), is_large: true })

/** Takes slots until none is available, without releasing any. */
function fill(slots: Slots, one: LaneKey, ofProvider: number): number {
  let taken = 0
  for (let room = slots.capacityFor(one, ofProvider); room > 0; room = slots.capacityFor(one, ofProvider)) {
    for (; room > 0; room--, taken++) slots.take(one)
  }
  return taken
}

describe('slots', () => {
  test('a single lane can use most of them but never all', () => {
    const slots = new Slots(50)
    assert.equal(fill(slots, lane(1), 1000), 40)
    assert.equal(slots.free, 10)
  })

  test("the provider's limit applies if it is smaller", () => {
    const slots = new Slots(50)
    assert.equal(fill(slots, lane(1), 20), 16)
    assert.equal(slots.capacityFor(lane(2), 20), 3)
    assert.equal(slots.capacityFor({ ...lane(1), provider: 'ses' }, 1000), 27)
  })

  test('two stuck lanes leave slots for a third', () => {
    const slots = new Slots(50)
    for (const id of [1, 2]) fill(slots, lane(id), 1000)
    assert.ok(slots.capacityFor(lane(3), 1000) > 0)
  })

  test('the last slot is reserved for a lane that uses none', () => {
    const slots = new Slots(2)
    slots.take(lane(1))
    assert.equal(slots.capacityFor(lane(1), 2), 0)
    assert.equal(slots.capacityFor(lane(2), 2), 1)
  })

  test('at most two large messages, from different projects, are in flight in addition to small ones', () => {
    const slots = new Slots(50)
    assert.equal(fill(slots, large(1), 1000), 1)
    assert.equal(slots.freeLarge, 1)
    assert.equal(fill(slots, large(2), 1000), 1)
    assert.equal(fill(slots, large(3), 1000), 0)
    assert.ok(slots.capacityFor(lane(1), 1000) > 0)
    slots.release(large(1))
    assert.equal(fill(slots, large(3), 1000), 1)
  })

  test('a released slot can be taken again', () => {
    const slots = new Slots(1)
    slots.take(lane(1))
    assert.equal(slots.capacityFor(lane(1), 1), 0)
    slots.release(lane(1))
    assert.equal(slots.capacityFor(lane(1), 1), 1)
  })
})
