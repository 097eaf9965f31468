import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { ownProject, keyOf } = await customers(api, database)
const { owner, project } = await ownProject()
const mail = mailRows(database)
const path = `/projects/${project.id}`

let keys = 0
const newKey = (): Record<string, string> => ({ 'idempotency-key': `repeat-${++keys}` })

describe('an operation on the mail side that is repeated with its Idempotency-Key', () => {
  test('returns the first response and changes nothing', async () => {
    const headers = newKey()
    const body = { address: 'repeated@example.net' }
    const first = await owner.post(`${path}/suppressions`, body, headers)
    assert.equal(first.status, 201)
    const removed = await owner.delete(`${path}/suppressions/repeated@example.net`)
    assert.equal(removed.status, 204)

    const again = await owner.post(`${path}/suppressions`, body, headers)
    assert.deepEqual([again.status, again.text], [first.status, first.text])
    assert.equal(again.headers.get('location'), first.headers.get('location'))
    assertProblem(await owner.get(`${path}/suppressions/repeated@example.net`), 404, 'not_found')
  })

  test('returns the first 204 of a deletion', async () => {
    await owner.post(`${path}/suppressions`, { address: 'deleted@example.net' })
    const headers = newKey()
    const remove = () => owner.delete(`${path}/suppressions/deleted@example.net`, undefined, headers)
    assert.equal((await remove()).status, 204)
    assert.equal((await remove()).status, 204)
    assertProblem(await owner.delete(`${path}/suppressions/deleted@example.net`), 404, 'not_found')
  })

  test('returns the first response of a cancellation', async () => {
    const { messageId } = await mail.makeMail(project.id, { sendIn: '1 day' })
    const headers = newKey()
    const cancel = () => owner.post(`${path}/messages/${messageId}/cancel`, {}, headers)
    const first = await cancel()
    assert.equal(first.status, 200, first.text)
    const again = await cancel()
    assert.deepEqual([again.status, again.text], [first.status, first.text])
  })

  test('is rejected with a different body', async () => {
    const headers = newKey()
    await owner.post(`${path}/suppressions`, { address: 'one@example.net' }, headers)
    assertProblem(
      await owner.post(`${path}/suppressions`, { address: 'two@example.net' }, headers),
      422,
      'idempotency_key_reused',
    )
  })

  test('is a separate request for another caller', async () => {
    const headers = newKey()
    const program = await keyOf(project.id, ['suppressions:write'])
    await owner.post(`${path}/suppressions`, { address: 'three@example.net' }, headers)
    const other = await program.post('/suppressions', { address: 'four@example.net' }, headers)
    assert.equal(other.status, 201, other.text)
  })

  test('stores no error response', async () => {
    const headers = newKey()
    const remove = () => owner.delete(`${path}/suppressions/later@example.net`, undefined, headers)
    assertProblem(await remove(), 404, 'not_found')
    await owner.post(`${path}/suppressions`, { address: 'later@example.net' })
    assert.equal((await remove()).status, 204)
  })
})

test('a project that its owner deleted returns 404, even with the same Idempotency-Key', async () => {
  const mine = await ownProject()
  const headers = newKey()
  const remove = () => mine.owner.delete(`/projects/${mine.project.id}`, undefined, headers)
  assert.equal((await remove()).status, 204)
  assertProblem(await remove(), 404, 'not_found')
})
