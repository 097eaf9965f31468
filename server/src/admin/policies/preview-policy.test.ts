import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures, policyConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePolicy, makeProject, makeFiring } = fixtures(database, admin)

const previewOf = async (body: object): Promise<{ effects: string[]; warnings: string[] }> => {
  const {
    status,
    body: preview,
    text,
  } = await admin.post('/policies?dry_run=true', {
    ...policyConfiguration,
    ...body,
  })
  assert.equal(status, 200, text)
  return preview
}
const enforced = (intervention: object) =>
  previewOf({ mode: 'enforce', intervention: { ...policyConfiguration.intervention, ...intervention } })

describe('preview of policies.create', () => {
  test('says what the mode means', async () => {
    assert.deepEqual((await previewOf({ mode: 'off' })).effects, ['The policy is not evaluated.'])
    assert.deepEqual((await previewOf({})).effects, ['Firings are recorded; nothing else happens.'])
    const from = 'From the next evaluation on, a firing'
    const pace = { kind: 'pace', pace_per_hour: 1500 }
    for (const [intervention, effect] of [
      [{}, `${from} locks the project for 24 hours.`],
      [{ kind: 'warn', duration_minutes: 90 }, `${from} warns the project for 90 minutes.`],
      [{ kind: 'hold', duration_minutes: 60 }, `${from} holds the project's mail for 60 minutes.`],
      [
        { ...pace, duration_minutes: 2880 },
        `${from} limits the project to 1,500 recipients per hour for 2 days.`,
      ],
      [{ duration_minutes: null }, `${from} locks the project until an administrator ends the intervention.`],
    ] as const) {
      assert.deepEqual((await enforced(intervention)).effects, [effect])
    }
  })

  test('warns of an intervention without end or explanation, if the policy is enforced', async () => {
    const endless = { duration_minutes: null, public_note: null }
    assert.deepEqual((await enforced({})).warnings, [])
    assert.deepEqual((await enforced(endless)).warnings, [
      'The intervention has no expiry; an administrator has to end it.',
      'Without a public note, the members of the project do not learn why the intervention was started.',
    ])
    const intervention = { ...policyConfiguration.intervention, ...endless }
    assert.deepEqual((await previewOf({ intervention })).warnings, [])
  })

  test('warns of a threshold that is always reached', async () => {
    const score = { signal: 'score', window_minutes: 10_080 }
    assert.match(
      String((await previewOf({ ...score, threshold: 100 })).warnings),
      /^Every score is at most 100/,
    )
    assert.deepEqual((await previewOf({ ...score, threshold: 99 })).warnings, [])
    const spike = { signal: 'volume_spike' }
    assert.match(String((await previewOf({ ...spike, threshold: 1 })).warnings), /usual volume\.$/)
    assert.deepEqual((await previewOf({ ...spike, threshold: 1.5 })).warnings, [])
  })
})

describe('preview of policies.edit and policies.delete', () => {
  test('says that interventions stay in force, and how many firings are deleted', async () => {
    const { id } = await makePolicy({ mode: 'enforce' })
    const project = await makeProject()
    for (let n = 0; n < 3; n++) await makeFiring(project.id, id)
    const off = await admin.patch(`/policies/${id}?dry_run=true`, { mode: 'off' })
    const stay = 'Interventions that this policy has started stay in force.'
    assert.deepEqual(off.body.effects, ['The policy is not evaluated.', stay])
    const deleted = await admin.delete(`/policies/${id}?dry_run=true`)
    assert.deepEqual(deleted.body.effects, ['Firings that are deleted with the policy: 3.', stay])
    const unchanged = await admin.patch(`/policies/${id}?dry_run=true`, { mode: 'enforce' })
    assert.deepEqual(unchanged.body.effects, [])
  })
})
