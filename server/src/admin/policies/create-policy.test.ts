import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PolicyConfig } from '../../core/control/policies/wire.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, policyConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan } = fixtures(database, admin)
const { assertAudited } = auditOf(database, admin)
const reason = 'Abuse last week'

let made = 0
const create = (changes: object = {}) =>
  admin.post('/policies', { ...policyConfiguration, name: `Created ${++made}`, reason, ...changes })
const intervention = (changes: Partial<PolicyConfig['intervention']>) => ({
  intervention: { ...policyConfiguration.intervention, ...changes },
})
const scope = (changes: Partial<PolicyConfig['applies_to']>) => ({
  applies_to: { ...policyConfiguration.applies_to, ...changes },
})

describe('policies.create', () => {
  test('stores the configuration with sorted ids, and writes one audit row in chain 0', async () => {
    const [one, other] = [await makePlan(), await makePlan()]
    const answer = await create({
      name: '  Complaints of new projects ',
      mode: 'enforce',
      ...scope({
        plan_ids: [other.id, one.id, other.id],
        younger_than_days: 14,
        except_project_ids: [9_000, 12, 12],
      }),
      signal: 'complaint_rate',
      threshold: 0.1,
      ...intervention({ kind: 'pace', pace_per_hour: 500, duration_minutes: null, public_note: ' Slower. ' }),
    })
    assert.equal(answer.status, 201, answer.text)
    const { id, tripped_at, version, created_at, updated_at, ...configuration } = answer.body
    assert.deepEqual(configuration, {
      name: 'Complaints of new projects',
      mode: 'enforce',
      applies_to: {
        plan_ids: [one.id, other.id],
        younger_than_days: 14,
        except_project_ids: [12, 9_000],
      },
      signal: 'complaint_rate',
      window_minutes: 60,
      threshold: 0.1,
      minimum_volume: 300,
      intervention: { kind: 'pace', pace_per_hour: 500, duration_minutes: null, public_note: 'Slower.' },
      cooldown_minutes: 1440,
    })
    assert.deepEqual([tripped_at, version, updated_at], [null, 1, created_at])
    assert.deepEqual(
      [answer.headers.get('etag'), answer.headers.get('location')],
      ['"1"', `/v1/admin/policies/${id}`],
    )
    assert.deepEqual((await admin.get(`/policies/${id}`)).body, answer.body)
    await assertAudited(answer, {
      operation: 'policies.create',
      resource: ['policy', id],
      reason,
      after: { ...configuration, tripped_at: null },
    })
  })

  const refused: Record<string, [changes: object, message: RegExp]> = {
    'a pace without a rate': [intervention({ kind: 'pace' }), /^"intervention.pace_per_hour" is required/],
    'a rate without a pace': [
      intervention({ pace_per_hour: 500 }),
      /^"intervention.pace_per_hour" applies only to a pace\. For "lock", send null\.$/,
    ],
    'a score that is not computed from seven days': [
      { signal: 'score', window_minutes: 1440 },
      /^"window_minutes" must be 10080 for "score"/,
    ],
    'a score over 100': [
      { signal: 'score', window_minutes: 10_080, threshold: 100.5 },
      /^"threshold" must be at most 100 for "score"/,
    ],
    'a rate over 100 %': [
      { threshold: 101 },
      /^"threshold" must be at most 100 for "bounce_rate", .*percent/,
    ],
    'a rate of 0': [{ threshold: 0 }, /^"threshold" must be greater than 0 for "bounce_rate"/],
    'a factor of 0': [{ signal: 'volume_spike', threshold: 0 }, /^"threshold" must be greater than 0/],
    'a plan that does not exist': [
      scope({ plan_ids: [987_654] }),
      /^"applies_to.plan_ids": plan 987654 does not exist/,
    ],
    'an empty list of plans': [scope({ plan_ids: [] }), /"applies_to.plan_ids" must have at least 1 item/],
    'a window that is not a multiple of five minutes': [
      { window_minutes: 7 },
      /"window_minutes" must be a multiple of 5/,
    ],
    'a note of several lines': [
      intervention({ public_note: 'Two\nlines' }),
      /^"intervention.public_note" contains control characters/,
    ],
    'an incomplete intervention': [
      { intervention: { kind: 'lock' } },
      /"intervention.pace_per_hour" is missing/,
    ],
    'an invisible name': [{ name: '\u200b' }, /^"name" is empty/],
  }
  for (const [what, [changes, message]] of Object.entries(refused)) {
    test(`rejects ${what}`, async () => {
      const answer = await create(changes)
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, message)
    })
  }

  test('accepts the bounds of each signal, and projects that do not exist as exceptions', async () => {
    for (const changes of [
      { signal: 'score', window_minutes: 10_080, threshold: 0 },
      { signal: 'score', window_minutes: 10_080, threshold: 100 },
      { signal: 'suppressed_rate', threshold: 100 },
      { signal: 'failure_rate', threshold: 0.000_001 },
      { signal: 'volume_spike', threshold: 1_000_000 },
      scope({ except_project_ids: [Number.MAX_SAFE_INTEGER] }),
    ]) {
      const answer = await create(changes)
      assert.equal(answer.status, 201, answer.text)
      for (const [field, value] of Object.entries(changes)) assert.deepEqual(answer.body[field], value)
    }
  })

  test('rejects a name that another policy has, also if two requests arrive at the same time', async () => {
    const shipped = await create({ name: 'Bounce rate of 5 % or more' })
    assertProblem(shipped, 409, 'already_exists')
    assert.match(shipped.body.message, /policy 1\. Choose another name\.$/)
    const answers = await Promise.all([1, 2, 3].map(() => create({ name: 'Contested' })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409])
  })

  test('rejects the 101st policy, also if several requests arrive at the same time', async () => {
    await database.query(
      `insert into control.policies (name, mode, signal, window_minutes, threshold, minimum_volume, kind, cooldown_minutes)
       select 'Filler ' || n, 'off', 'bounce_rate', 60, 1, 1, 'warn', 60
         from generate_series(1, 98 - (select count(*)::int from control.policies)) as n`,
    )
    const answers = await Promise.all([1, 2, 3, 4].map(() => create()))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 422, 422])
    assertProblem(await create(), 422, 'limit_exceeded')
    assert.equal((await admin.get('/policies?limit=200')).body.data.length, 100)
  })
})
