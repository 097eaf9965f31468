import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Activity } from '../../../api/operations.gen.ts'
import { operations } from '../../operations.gen.ts'
import { phrases, sentenceOf } from './sentences.ts'

const sending = ['messages.send', 'messages.send-batch']

const entry = (operation: string, parts: Partial<Activity> = {}): Activity => ({
  ...{ id: 1, at: '2026-11-14T09:30:00.000Z', operation, request_id: 'r' },
  ...{ resource_type: 'endpoint', resource_id: '4', before: null, after: null, prev_hash: '', hash: '' },
  actor: { type: 'user', id: 7, email: 'ada@example.com', ip: null, user_agent: null },
  ...parts,
})
const text = (activity: Activity) =>
  sentenceOf(activity, { keyOf: (id) => (id === 3 ? 'Web shop' : undefined) })

describe('sentences of the activity', () => {
  test('exist for every change except sending', () => {
    const changes = Object.entries(operations)
      .filter(([, [method]]) => method !== 'GET')
      .map(([id]) => id.replace('customer.', ''))
      .filter((id) => !sending.includes(id))
    assert.deepEqual(
      changes.filter((id) => !phrases[id]),
      [],
    )
  })

  test('name the actor and what changed', () => {
    assert.equal(
      text(
        entry('endpoints.edit', {
          before: { name: 'Orders', is_active: true },
          after: { name: 'Orders', is_active: false },
        }),
      ),
      'ada@example.com deactivated the endpoint Orders',
    )
    assert.equal(
      text(entry('projects.edit', { before: { name: 'A' }, after: { name: 'B' } })),
      'ada@example.com renamed the project from A to B',
    )
    assert.equal(
      text(
        entry('suppressions.import', {
          actor: { type: 'api_key', id: 3, email: null, ip: null, user_agent: null },
          after: { added: 2 },
        }),
      ),
      'API key Web shop imported 2 suppressions',
    )
    assert.equal(text(entry('endpoints.rotate')), 'ada@example.com rotated the secret of the endpoint 4')
  })
})
