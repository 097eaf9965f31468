import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { inDays } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { endExpired } from './expiry.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeIntervention } = fixtures(database, admin)
const db = openDatabase(database, { poolSize: 8 }).as('admin')

/** As if the time had passed. */
const expire = (id: number) =>
  database.query(
    `update control.interventions set expires_at = postern.now() - interval '1 second' where id = $1`,
    [id],
  )
const auditOf = async (projectId: number) =>
  (await admin.get(`/audit?project_id=${projectId}&operation=interventions.expire`)).body.data
const eventsOf = async (projectId: number) =>
  (
    await database.query<{ type: string }>(
      `select payload ->> 'type' as type from control.outbox where project_id = $1 and topic = 'event' order by id`,
      [projectId],
    )
  ).map(({ type }) => type)

describe('an intervention that expires', () => {
  test('is ended once, by one of several workers, with an audit row of the system', async () => {
    const project = await makeProject()
    const path = `/projects/${project.id}`
    const { id } = await makeIntervention(project.id, { kind: 'lock', expires_at: inDays(1) })
    assert.equal(await endExpired(db), 0)
    await expire(id)
    assert.equal((await admin.get(path)).body.is_locked, true, 'the end is a write')
    const ended = await Promise.all(Array.from({ length: 4 }, () => endExpired(db)))
    assert.equal(
      ended.reduce((sum, count) => sum + count),
      1,
    )

    assert.equal((await admin.get(path)).body.is_locked, false)
    const { ended_by, ended_at } = (await admin.get(`${path}/interventions/${id}`)).body
    assert.equal(ended_by, 'expiry')
    assert.ok(ended_at !== null)
    const rows = await auditOf(project.id)
    assert.equal(rows.length, 1)
    const [row] = rows
    assert.deepEqual([row.actor_kind, row.actor.id, row.resource_id], ['system', 0, String(id)])
    assert.match(row.reason, /^Expired at /)
    assert.deepEqual(
      row.related.map(({ resource }: { resource: string }) => resource),
      ['project'],
    )
    assert.deepEqual(await eventsOf(project.id), [
      ...['project.intervened', 'project.locked', 'project.reinstated', 'project.unlocked'],
    ])
  })

  test('leaves a project locked that has another lock', async () => {
    const project = await makeProject()
    const { id } = await makeIntervention(project.id, { kind: 'lock', expires_at: inDays(1) })
    await admin.patch(`/projects/${project.id}`, { is_locked: true, reason: 'For good' })
    await expire(id)
    assert.equal(await endExpired(db), 1)
    assert.equal((await admin.get(`/projects/${project.id}`)).body.is_locked, true)
    assert.deepEqual((await auditOf(project.id))[0].related, [])
  })

  test('is not ended if it was ended or extended before', async () => {
    const project = await makeProject()
    const [ended, extended] = [
      await makeIntervention(project.id, { kind: 'hold', expires_at: inDays(1) }),
      await makeIntervention(project.id, { kind: 'hold', expires_at: inDays(1) }),
    ]
    await admin.post(`/projects/${project.id}/interventions/${ended.id}/end`, { reason: 'Over' })
    await expire(ended.id)
    await expire(extended.id)
    await admin.patch(`/projects/${project.id}/interventions/${extended.id}`, {
      ...{ pace_per_hour: null, public_note: null, expires_at: inDays(2), reason: 'Not yet' },
    })
    assert.equal(await endExpired(db), 0)
    assert.deepEqual(await auditOf(project.id), [])
  })
})
