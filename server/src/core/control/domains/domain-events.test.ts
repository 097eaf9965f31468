import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordOf, startStage, startWorld } from '../../../testing/harness/verification-harness.ts'

/** A domain's events, as published to the mail database. */
const world = await startWorld()
const { publish, withdraw } = world
const stage = await startStage(world)

test('a domain event is published when a check changes the status, and only then', async () => {
  const domain = await stage.makeRegistered('service')
  const published = async () => {
    const rows = await stage.database.query<{ project: number; payload: object }>(
      `select project_id::int as project, payload from control.outbox where topic = 'event' order by id`,
    )
    await stage.database.query('delete from control.outbox')
    return rows
  }
  const { id, name, mta_provider, project_id: project } = domain
  const eventFor = (status: 'verified' | 'failed', last_check_error: string | null) => [
    {
      project,
      payload: { type: `domain.${status}`, data: { id, name, status, mta_provider, last_check_error } },
    },
  ]

  await stage.check(domain)
  assert.deepEqual(await published(), [])

  await publish(...domain.dns_records)
  await stage.check(domain)
  assert.deepEqual(await published(), eventFor('verified', null))
  await stage.check(domain)
  assert.deepEqual(await published(), [])

  const ownership = recordOf(domain, 'ownership')
  await withdraw(ownership)
  await stage.check(domain)
  assert.deepEqual(await published(), [], 'grace period of three days')
  const failed = await stage.check(domain, await stage.later('3 days 1 minute'))
  assert.deepEqual(await published(), eventFor('failed', failed.last_check_error))
  assert.match(failed.last_check_error ?? '', /was not found/)

  await publish(ownership)
  await stage.check(domain, await stage.later('4 days'))
  assert.deepEqual(await published(), eventFor('verified', null))
})
