import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { assertShape, type Shape } from '../../testing/expectations/shape.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database, { POSTERN_MAX_PLATFORM_SUPPRESSIONS: '3' })
const admin = await signedIn(api)
const { makeSender } = senders(api, database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'Demands no mail from any customer.'
const shape: Shape = [
  ['address', 'string'],
  ['reason', 'string'],
  ['created_at', 'timestamp'],
]
const create = (address: string) => admin.post('/suppressions', { address, reason })
const statusOf = async ({ send, program }: Awaited<ReturnType<typeof makeSender>>, to: string) =>
  (await program.get(`/messages/${await send({ to: [to] })}`)).body.status

describe('platform-suppressions.create', () => {
  test('stops all projects from sending to the address, and records it without the address', async () => {
    const projects = [await makeSender(), await makeSender()]
    const answer = await create('Ada@Example.net')
    assert.equal(answer.status, 201, answer.text)
    assertShape(answer.body, shape)
    assert.deepEqual([answer.body.address, answer.body.reason], ['ada@example.net', reason])
    assert.equal(answer.headers.get('location'), '/v1/admin/suppressions/ada%40example.net')
    await assertAudited(answer, {
      operation: 'platform-suppressions.create',
      resource: ['platform_suppression', 0],
      reason,
      after: {},
      subject: { email: 'ada@example.net', name: null },
    })
    for (const project of projects) {
      assert.equal(await statusOf(project, 'ADA@example.net'), 'suppressed')
      assert.equal(await statusOf(project, 'grace@example.net'), 'queued')
    }
    assert.deepEqual((await admin.get('/suppressions/ADA@example.net')).body, answer.body)
  })

  test('says in the event, and to administrators with the reason, which list contains the address', async () => {
    const sender = await makeSender()
    await create('ada@example.net')
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'own@example.net', 'bounce')`,
      [sender.id],
    )
    const id = await sender.send({ to: ['ada@example.net', 'own@example.net'] })
    const { body } = await admin.get(`${sender.path}/messages/${id}/events`)
    assert.deepEqual(
      body.data
        .filter(({ type }: { type: string }) => type === 'message.suppressed')
        .map(({ data }: { data: object }) => data)
        .toSorted((one: { list: string }, other: { list: string }) => one.list.localeCompare(other.list)),
      [
        { recipient: 'ada@example.net', list: 'platform' },
        { recipient: 'own@example.net', list: 'project' },
      ],
    )
    const query = `from=a@${sender.domain.name}&to=Ada@example.net`
    const forAdmin = await admin.get(`${sender.path}/explain?${query}`)
    const messageOf = ({ checks }: { checks: { name: string; message: string }[] }) =>
      checks.find(({ name }) => name === 'suppression')?.message
    assert.equal(forAdmin.body.outcome, 'suppressed')
    assert.equal(
      messageOf(forAdmin.body),
      'Ada@example.net is on the platform-wide suppression list: Demands no mail from any customer. The message is accepted but not sent to this address. Delete it from that list if the recipient wants the mail.',
    )
    await admin.patch(`${sender.path}/api-keys/${sender.keyId}`, {
      ...{ name: 'Key', scopes: ['messages:send', 'usage:read'], domain_id: null, allowed_ips: [] },
      ...{ expires_at: null, is_active: true, reason: 'Needed' },
    })
    const forCustomer = await sender.program.get(`/explain?${query}`)
    assert.equal(forCustomer.status, 200, forCustomer.text)
    assert.equal(forCustomer.body.outcome, 'suppressed')
    assert.match(messageOf(forCustomer.body) ?? '', /is suppressed for all projects by the operator/)
    assert.ok(!forCustomer.text.includes('Demands'), forCustomer.text)
  })

  test('returns an existing entry unchanged', async () => {
    const first = await create('ada@example.net')
    const again = await admin.post('/suppressions', { address: 'ADA@example.net', reason: 'Another reason' })
    assert.deepEqual([again.status, again.body], [201, first.body])
    await assertNotAudited(again)
  })

  test('cannot exceed the cap, even with a reason', async () => {
    for (const n of [1, 2]) assert.equal((await create(`p${n}@example.net`)).status, 201)
    assertProblem(await create('p3@example.net'), 422, 'limit_exceeded')
    const two = { csv: 'p3@example.net\np1@example.net', reason }
    assertProblem(await admin.post('/suppressions/import', two), 422, 'limit_exceeded')
    assert.equal((await admin.get('/suppressions')).body.data.length, 3)
  })

  test('rejects an invalid address', async () => {
    for (const address of ['', 'x', 'a@b', 'Ada <ada@example.net>'])
      assertProblem(await create(address), 422, 'validation_failed')
    assertProblem(await admin.post('/suppressions', { address: 'z@example.net' }), 422, 'reason_required')
    assertProblem(await admin.get('/suppressions/nobody@example.net'), 404, 'not_found')
    assertProblem(await admin.get('/suppressions/x'), 404, 'not_found')
  })
})
