import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, makePlan, openStage } from './stage.ts'

/**
 * A small plan allows three messages per day and one domain. Customer requests that would exceed these limits are
 * rejected. An administrator can exceed configuration limits by stating a reason, and can override the plan, but a
 * reason never bypasses the checks made when a message is sent.
 */
const stage = await openStage({
  plan: { max_mails_per_day: 3, max_domains: 1 },
  // The day must not end during the scenario, because the quota would be reset.
  timeOfDay: '06:00',
})
const project = `/admin/projects/${stage.project.id}`
const mail = {
  from: 'orders@shop.example.org',
  to: ['anna@example.net'],
  subject: 'Your order',
  text: 'It is on its way.',
}

describe('a plan of three messages per day and one domain', () => {
  it('allows three messages, and reports when the quota is reset', async () => {
    await stage.send({ to: ['anna@example.net', 'bea@example.net'] })
    const tooMuch = await stage.shop.post('/messages', {
      ...mail,
      to: ['carl@example.net', 'dora@example.net'],
    })
    assert.deepEqual([tooMuch.status, tooMuch.body.error], [429, 'quota_exceeded'])
    await stage.send(mail)

    const most = await secondsToMidnight()
    const beyond = await stage.shop.post('/messages', mail)
    assert.deepEqual([beyond.status, beyond.body.error], [429, 'quota_exceeded'])
    const retryAfter = Number(beyond.headers.get('retry-after'))
    const least = await secondsToMidnight()
    assert.ok(retryAfter >= least && retryAfter <= most, `${retryAfter} s, not from ${least} to ${most} s`)
  })

  it('is overridden by an administrator, with a required reason', async () => {
    const { id: admin_plan_id } = await makePlan(stage.admin, { name: 'Season', max_mails_per_day: 10 })
    const unexplained = await stage.admin.patch(project, { admin_plan_id })
    assert.deepEqual([unexplained.status, unexplained.body.error], [422, 'reason_required'])
    assert.equal((await stage.shop.post('/messages', mail)).status, 429)

    await body(200, stage.admin.patch(project, { admin_plan_id, reason: 'A campaign, agreed on the phone' }))
    await stage.settled(await stage.send(mail), 'delivered')
    const usage = await body<{ day: { accepted: number; limit: number } }>(
      200,
      stage.shop.get(`/projects/${stage.project.id}/usage`),
    )
    assert.deepEqual([usage.day.accepted, usage.day.limit], [4, 10])

    await body(200, stage.admin.patch(project, { admin_plan_id: null, reason: 'The campaign is over' }))
    assert.equal((await stage.shop.post('/messages', mail)).status, 429)
  })

  it('allows one domain, and more if an administrator provides a reason', async () => {
    const second = { name: 'store.example.org', mta_provider: 'service' }
    const customers = await stage.shop.post(`/projects/${stage.project.id}/domains`, second)
    assert.deepEqual([customers.status, customers.body.error], [422, 'limit_exceeded'])

    const unexplained = await stage.admin.post(`${project}/domains`, second)
    assert.deepEqual([unexplained.status, unexplained.body.error], [422, 'limit_exceeded'])
    const reason = 'Moving house, both names for a month'
    const { id } = await body<{ id: number }>(
      201,
      stage.admin.post(`${project}/domains`, { ...second, reason }),
    )

    const { data } = await body<{ data: { limit_exception: unknown; reason: string }[] }>(
      200,
      stage.admin.get(
        `/admin/audit?project_id=${stage.project.id}&operation=domains.create&resource=domain:${id}`,
      ),
    )
    assert.deepEqual(
      data.map((row) => [row.reason, row.limit_exception]),
      [[reason, { limit: 'max_domains', value: 1, count: 2 }]],
    )
  })

  it('does not let a reason bypass a check made when a message is sent', async () => {
    const reason = 'Complaints about the list'
    const { id: admin_plan_id } = await makePlan(stage.admin, { name: 'Large', max_domains: 1 })
    await body(200, stage.admin.patch(project, { is_locked: true, admin_plan_id, reason }))
    await body(
      201,
      stage.admin.post(`${project}/domains`, { name: 'mall.example.org', mta_provider: 'service', reason }),
    )
    const locked = await stage.shop.post('/messages', mail)
    assert.deepEqual([locked.status, locked.body.error], [403, 'project_locked'])
    const pleading = await stage.shop.post('/messages', { ...mail, reason })
    assert.notEqual(pleading.status, 202)
    await stage.eventually('the accepted messages have arrived', () => stage.sink.received.length >= 4)
    assert.equal(stage.sink.received.length, 4)
  })
})

/** Measured by the database's clock and rounded up. */
async function secondsToMidnight(): Promise<number> {
  const [row] = await stage.database.query<{ seconds: number }>(
    `select ceil(extract(epoch from date_trunc('day', postern.now(), 'UTC') + interval '1 day' - postern.now()))::int
              as seconds`,
  )
  return row?.seconds ?? assert.fail()
}
