import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Policy } from '../../../api/operations.gen.ts'
import { conditionOf, figuresOf, reactionOf, scopeOf } from './sentences.ts'

const condition = (part: Partial<Policy>) =>
  conditionOf({ signal: 'bounce_rate', threshold: 10, window_minutes: 1440, minimum_volume: 500, ...part })
const reaction = (part: Partial<Policy['intervention']>) =>
  reactionOf({ kind: 'lock', pace_per_hour: null, duration_minutes: 1440, public_note: null, ...part })
const scope = (part: Partial<Policy['applies_to']>) =>
  scopeOf(
    { plan_ids: null, younger_than_days: null, except_project_ids: [], ...part },
    (id) => ({ 3: 'Business' })[id],
  )

describe('a policy in words', () => {
  test('says when it fires', () => {
    assert.equal(condition({}), 'Bounce rate ≥ 10 % in 24 hours, at least 500 recipients')
    assert.equal(
      condition({ signal: 'complaint_rate', threshold: 0.1, window_minutes: 60, minimum_volume: 1 }),
      'Complaint rate ≥ 0.1 % in 1 hour, at least 1 recipient',
    )
    assert.equal(
      condition({ signal: 'volume_spike', window_minutes: 95 }),
      'Volume ≥ 10 × the usual volume in 95 minutes, at least 500 recipients',
    )
    assert.equal(
      condition({ signal: 'score', threshold: 40, window_minutes: 10_080 }),
      'Score ≤ 40, at least 500 recipients in 7 days',
    )
  })

  test('says what it does, and for how long', () => {
    assert.equal(reaction({}), 'lock for 24 hours')
    assert.equal(
      reaction({ kind: 'pace', pace_per_hour: 1500, duration_minutes: 4320 }),
      'pace of 1,500 per hour for 3 days',
    )
    assert.equal(reaction({ kind: 'warn', duration_minutes: null }), 'warning until an administrator ends it')
  })

  test('says for which projects', () => {
    assert.equal(scope({}), 'All projects')
    assert.equal(
      scope({ plan_ids: [3, 4], younger_than_days: 1, except_project_ids: [7, 8] }),
      'All projects younger than 1 day with the plans Business, 4, except 2 projects',
    )
  })
})

describe('the figures of a firing', () => {
  const figures = { value: 25, counted: 100, baseline: 400 }

  test('are in the unit of the signal', () => {
    assert.equal(figuresOf('bounce_rate', figures), '25 % (100 of 400 recipients)')
    assert.equal(
      figuresOf('volume_spike', { value: 12.345, counted: 6000, baseline: 486.03 }),
      '12.35 × (6,000 recipients instead of 486.03)',
    )
    assert.equal(figuresOf('score', { value: 31, counted: 9, baseline: 4000 }), '31 (4,000 recipients)')
  })
})
