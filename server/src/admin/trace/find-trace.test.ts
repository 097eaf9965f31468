import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { makeVerp } from '../../formats/verp.ts'
import { shardOf } from '../../platform/db/cells.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { type Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { startTwoCells } from '../../testing/harness/two-cells.ts'

const database = await testDatabase()
const { api, databaseOf, startWithout } = await startTwoCells(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const keys = verpKeysOf(api.context.config.masterKeys)

/** A message of a new project in each of the cells. */
async function makeMails() {
  const mails = []
  for (const isWanted of [(shard: number) => shard < 512, (shard: number) => shard >= 512]) {
    let project = await makeProject()
    while (!isWanted(shardOf(project.id))) project = await makeProject()
    mails.push({
      project,
      ...(await mailRows(databaseOf(shardOf(project.id))).makeMail(project.id, {
        address: `Person${project.id}@Example.net`,
      })),
    })
  }
  const [one = assert.fail(), other = assert.fail()] = mails
  return [one, other] as const
}

const lookups = () =>
  database.query<{ actor_id: string; operation: string; question: string; project_ids: string[] }>(
    'select actor_id, operation, question, project_ids from control.lookups order by id',
  )

describe('trace.find', () => {
  test('finds messages in all cells, by signed references and by guesses', async () => {
    const [one, other] = await makeMails()
    const text = `${makeVerp(keys, { ...other, attempt: 1 })}\nMessage-ID: <${one.messageId}@acme.example>`
    const answer = await admin.post('/trace', { text })
    assert.equal(answer.status, 200, answer.text)
    const found = (mail: typeof one) => ({
      message_id: mail.messageId,
      project_id: mail.projectId,
      project_name: mail.project.name,
      recipient: { no: 0, address: mail.address, status: 'sent' },
    })
    const [{ created_at, ...first }, { created_at: _, ...second }] = answer.body.data
    assert.deepEqual(first, { ...found(other), matched_by: 'return_path', is_certain: true })
    assert.deepEqual(second, { ...found(one), matched_by: 'message_id', is_certain: false })
    assert.match(created_at, /^\d{4}-.*Z$/)
    assert.deepEqual(answer.body.unreachable_cells, [])
    for (const mail of [one, other]) {
      const { body } = await admin.post('/trace', { text: `${mail.address.toUpperCase()}` })
      assert.deepEqual(
        body.data.map(({ message_id }: { message_id: string }) => message_id),
        [mail.messageId],
      )
    }
  })

  test('names a cell that cannot be reached, and finds the mail of the others', async () => {
    const [one, other] = await makeMails()
    const less = await startWithout()
    const lessAdmin = await signedIn(less)
    const text = [one, other].map((mail) => makeVerp(keys, { ...mail, attempt: 1 })).join('\n')
    const { status, body } = await lessAdmin.post('/trace', { text })
    assert.equal(status, 200)
    assert.deepEqual(body.unreachable_cells, ['b'])
    assert.deepEqual(
      body.data.map(({ message_id }: { message_id: string }) => message_id),
      [one.messageId],
    )
  })

  test('records who looked, what was found and what was asked, without a signed reference', async () => {
    const [one, other] = await makeMails()
    const before = (await lookups()).length
    const token = makeVerp(keys, { ...one, attempt: 1 })
    await admin.post('/trace', { text: `${token} <${other.messageId}@acme.example>` })
    await admin.post('/trace', { text: 'nothing here' })
    assert.deepEqual((await lookups()).slice(before), [
      {
        actor_id: String(admin.userId),
        operation: 'trace.find',
        question: `signed ${one.messageId} recipient 0, message ${other.messageId}`,
        project_ids: [String(one.projectId), String(other.projectId)],
      },
      {
        ...{ actor_id: String(admin.userId), operation: 'trace.find' },
        ...{ question: 'no reference recognized', project_ids: [] },
      },
    ])
  })

  test('records only the beginning of a long word, which can be a secret', async () => {
    const secret = `pk_live_${'a1'.repeat(20)}`
    assert.equal((await admin.post('/trace', { text: ` ${secret}\n` })).status, 200)
    assert.equal((await lookups()).at(-1)?.question, 'queue id pk_live_a1a1…')
  })

  test('finds nothing with the id of the last millisecond that an id can contain', async () => {
    const answer = await admin.post('/trace', { text: 'ffffffff-ffff-7fff-bfff-ffffffffffff' })
    assert.deepEqual([answer.status, answer.body.data], [200, []])
  })

  test('does not answer if the lookup cannot be recorded', async () => {
    await database.query('revoke insert on control.lookups from postern_admin')
    try {
      assertProblem(await admin.post('/trace', { text: 'x' }), 500, 'internal_error')
    } finally {
      await database.query('grant insert on control.lookups to postern_admin')
    }
  })

  test('changes nothing else: it has no audit row, no reason and no preview', async () => {
    const rows = await watchRows(database, { except: ['control.lookups'] })
    assert.equal((await admin.post('/trace', { text: 'x' }, { 'idempotency-key': 'k' })).status, 200)
    const repeated = await admin.post('/trace', { text: 'y' }, { 'idempotency-key': 'k' })
    assert.deepEqual([repeated.status, repeated.headers.get('idempotent-replayed')], [200, null])
    assertProblem(await admin.post('/trace', { text: 'x', reason: 'r' }), 422, 'validation_failed')
    assertProblem(await admin.post('/trace?dry_run=true', { text: 'x' }), 400, 'invalid_parameter')
    await rows.assertUntouched()
  })

  test('accepts 65,536 characters, and rejects longer, empty and missing texts without a denial', async () => {
    const post = (body: object | undefined, client: Client = admin) => client.post('/trace', body)
    const isDenied = async () => (await admin.get(`/denials?actor=${admin.userId}`)).body.data.length > 0
    assert.equal((await post({ text: 'ü'.repeat(65_536) })).status, 200)
    for (const text of ['', 'x'.repeat(65_537), 'a\u0000b', 7, null])
      assertProblem(await post({ text }), 422, 'validation_failed')
    assertProblem(await post({}), 422, 'validation_failed')
    assertProblem(await post(undefined), 400, 'invalid_json')
    assert.equal(await isDenied(), false)
  })
})
