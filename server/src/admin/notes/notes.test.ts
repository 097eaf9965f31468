import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { erasePerson } from '../../core/control/audit/erasure.ts'
import { verifyAudit } from '../../core/control/audit/verify.ts'
import { maxNotes } from '../../core/control/notes/notes.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { assertShape, type Shape } from '../../testing/expectations/shape.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const colleague = await signedIn(api)
const { makeProject, makeNote } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const shape: Shape = [
  ['id', 'integer'],
  ['project_id', 'integer'],
  ['text', 'string'],
  ['author', 'object'],
  ['version', 'integer'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]
const text = 'Ada from billing called.\nThe invoices go out on the 28th.'
const reason = 'No longer true'

describe('notes.create', () => {
  test('adds a note with its author, and keeps the text outside the chain', async () => {
    const { id } = await makeProject()
    const answer = await admin.post(`/projects/${id}/notes`, { text: ` ${text.replace('\n', '\r\n')}\n` })
    assert.equal(answer.status, 201, answer.text)
    assertShape(answer.body, shape)
    assert.deepEqual(
      [answer.body.text, answer.body.author, answer.body.version],
      [text, { id: admin.userId, email: admin.email }, 1],
    )
    const path = `/projects/${id}/notes/${answer.body.id}`
    assert.equal(answer.headers.get('location'), `/v1/admin${path}`)
    assert.deepEqual((await admin.get(path)).body, answer.body)
    await assertAudited(answer, {
      operation: 'notes.create',
      project_id: id,
      resource: ['note', answer.body.id],
      after: { text },
    })
    const [chained = assert.fail()] = await database.query<{
      after: { text: { text_digest: string; characters: number } }
    }>(`select after from control.audit where operation = 'notes.create' and project_id = $1`, [id])
    const { text: stored } = chained.after
    assert.deepEqual(Object.keys(stored).sort(), ['characters', 'text_digest'])
    assert.equal(stored.characters, text.length)
  })

  test('accepts 4,000 characters, and rejects more, an empty text and control characters', async () => {
    const { id } = await makeProject()
    assert.equal((await admin.post(`/projects/${id}/notes`, { text: '😀'.repeat(4000) })).status, 201)
    for (const bad of ['', ' \n ', 'x'.repeat(4001), 'bell \u0007', 'a\u202eb']) {
      const refused = await admin.post(`/projects/${id}/notes`, { text: bad })
      assertProblem(refused, 422, 'validation_failed')
      await assertNotAudited(refused)
    }
    assertProblem(await admin.post('/projects/999999999/notes', { text }), 404, 'not_found')
  })

  test(`is limited to ${maxNotes} notes per project`, async () => {
    const { id } = await makeProject()
    await database.query(
      `insert into control.notes (project_id, text, author_id) select $1, 'x', $2 from generate_series(2, $3)`,
      [id, admin.userId, maxNotes],
    )
    await makeNote(id)
    assertProblem(await admin.post(`/projects/${id}/notes`, { text }), 422, 'limit_exceeded')
  })
})

describe('notes.edit', () => {
  test('replaces the text, keeps the author, and records who edited it', async () => {
    const { id } = await makeProject()
    const note = await makeNote(id)
    const path = `/projects/${id}/notes/${note.id}`
    const answer = await colleague.patch(path, { text }, { 'if-match': '"1"' })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual([answer.body.text, answer.body.version, answer.body.author.id], [text, 2, admin.userId])
    await auditOf(database, colleague).assertAudited(answer, {
      operation: 'notes.edit',
      project_id: id,
      resource: ['note', note.id],
      before: { text: note.text },
      after: { text },
    })
    const same = await admin.patch(path, { text: `${text}  ` })
    assert.deepEqual([same.status, same.body.version], [200, 2])
    await assertNotAudited(same)
    assertProblem(await admin.patch(path, { text: 'x' }, { 'if-match': '"1"' }), 412, 'stale_resource')
  })

  test('returns 404 for a note of another project', async () => {
    const [own, other] = [await makeProject(), await makeProject()]
    const note = await makeNote(other.id)
    assertProblem(await admin.patch(`/projects/${own.id}/notes/${note.id}`, { text }), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${own.id}/notes/${note.id}`), 404, 'not_found')
  })
})

describe('notes.delete', () => {
  test('deletes the note, with a reason', async () => {
    const { id } = await makeProject()
    const note = await makeNote(id)
    const path = `/projects/${id}/notes/${note.id}`
    assertProblem(await admin.delete(path, {}), 422, 'reason_required')
    const answer = await admin.delete(path, { reason })
    assert.equal(answer.status, 204, answer.text)
    await assertAudited(answer, {
      operation: 'notes.delete',
      project_id: id,
      resource: ['note', note.id],
      reason,
      before: { text: note.text },
    })
    assertProblem(await admin.get(path), 404, 'not_found')
  })
})

describe('notes.list', () => {
  test('returns the notes of one project, newest first', async () => {
    const [own, other] = [await makeProject(), await makeProject()]
    const made = [await makeNote(own.id), await makeNote(own.id), await makeNote(own.id)]
    await makeNote(other.id)
    const { body } = await admin.get(`/projects/${own.id}/notes`)
    assert.deepEqual(body, { data: made.toReversed(), next_cursor: null })
    assertProblem(await admin.get('/projects/999999999/notes'), 404, 'not_found')
  })
})

describe('the text of a note in the audit log', () => {
  test('can be erased by an address that it contains, and is verified until then', async () => {
    const db = api.context.db.admin
    const { id } = await makeProject()
    const about = 'Barbara (Barbara.Liskov@example.net) demands a refund.'
    const created = await admin.post(`/projects/${id}/notes`, { text: about })
    await admin.delete(`/projects/${id}/notes/${created.body.id}`, { reason })
    const verify = () => verifyAudit(db, { keys: new Map() })
    assert.equal((await verify()).first_bad, null)
    const email = 'barbara.liskov@example.net'
    const erased = await db.transaction((tx) =>
      erasePerson(tx, { email, requestId: randomUUIDv7(), reason: 'erasure request' }),
    )
    assert.equal(erased, 2)
    const { body } = await admin.get(`/audit?project_id=${id}&resource=note:${created.body.id}`)
    assert.deepEqual(
      body.data.map(({ before, after }: { before: unknown; after: unknown }) => [before, after]),
      [
        [{ text: null }, null],
        [null, { text: null }],
      ],
    )
    const { ok, erased: missing } = await verify()
    assert.deepEqual([ok, missing], [true, 2])
  })
})
