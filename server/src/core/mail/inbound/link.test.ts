import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { linkKeysOf, makeLink, readLink } from './link.ts'

const keys = linkKeysOf([{ id: '1', key: randomBytes(32) }])
const now = new Date('2026-11-14T09:30:00Z')
const later = (seconds: number) => new Date(now.getTime() + seconds * 1000)
const linked = { shard: 1023, bodyId: '01a1e014-fc3c-7c5d-b332-11f4f026d9fe', attachment: 3 }

describe('a link', () => {
  test('identifies its content for a week', () => {
    for (const attachment of [0, 3, null]) {
      const link = makeLink(keys, { ...linked, attachment }, now)
      assert.deepEqual(readLink(keys, link, now), { ...linked, attachment })
      const week = 7 * 24 * 3600
      assert.ok(readLink(keys, link, later(week)))
      assert.equal(readLink(keys, link, later(week + 1)), undefined)
    }
  })

  test('is invalid if any character is changed or it is signed with another key', () => {
    const link = makeLink(keys, linked, now)
    for (let at = 0; at < link.length; at++) {
      const other = link[at] === 'b' ? 'c' : 'b'
      assert.equal(readLink(keys, link.slice(0, at) + other + link.slice(at + 1), now), undefined, String(at))
    }
    const strangers = linkKeysOf([{ id: '1', key: randomBytes(32) }])
    assert.equal(readLink(strangers, link, now), undefined)
    for (const text of ['', 'x', `${link}=`, ` ${link}`, `${link}a`]) {
      assert.equal(readLink(keys, text, now), undefined, text)
    }
  })
})
