import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { makeMail } = mailRows(database)

interface Listed {
  id: string
  recipients: { address: string; status: string }[]
}

/** Reads every page. A page can be short without being the last. */
async function list(projectId: number, query: Record<string, string> = {}): Promise<Listed[]> {
  const found: Listed[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const parameters = new URLSearchParams({ ...query, ...(cursor === '' ? {} : { cursor }) })
    const { status, body, text } = await admin.get(`/projects/${projectId}/messages?${parameters}`)
    assert.equal(status, 200, text)
    assert.ok(body.data.length <= Number(query['limit'] ?? 50))
    found.push(...body.data)
    cursor = body.next_cursor
  }
  return found
}

const idsOf = (listed: readonly Listed[]) => listed.map(({ id }) => id)

describe('messages.list', () => {
  test("returns each of a project's messages once, newest first, at any page size", async () => {
    const [{ id }, other] = [await makeProject(), await makeProject()]
    const sent: string[] = []
    for (let n = 0; n < 23; n++) sent.unshift((await makeMail(id)).messageId)
    await makeMail(other.id)
    for (const limit of ['1', '7', '22', '23', '24', '200']) {
      assert.deepEqual(idsOf(await list(id, { limit })), sent, `by ${limit}`)
    }
    assert.deepEqual(idsOf(await list(id)), sent)
  })

  test('filters by recipient, status and tag, separately and combined', async () => {
    const { id } = await makeProject()
    const make = async (address: string, status: string, tags: string[]) =>
      (await makeMail(id, { address, status, tags })).messageId
    const a = await make('Ada@Example.net', 'delivered', ['order', 'eu'])
    const b = await make('ada@example.net', 'bounced', ['order'])
    const c = await make('grace@example.net', 'bounced', ['news'])
    const searches: [Record<string, string>, string[]][] = [
      [{ recipient: 'ADA@example.NET' }, [b, a]],
      [{ recipient: 'ada' }, []],
      [{ recipient: '%@example.net' }, []],
      [{ status: 'bounced' }, [c, b]],
      [{ status: 'sent' }, []],
      [{ tag: 'order' }, [b, a]],
      [{ tag: 'ord' }, []],
      [{ recipient: 'ada@example.net', status: 'bounced' }, [b]],
      [{ recipient: 'ada@example.net', tag: 'eu' }, [a]],
      [{ recipient: 'grace@example.net', status: 'bounced', tag: 'news' }, [c]],
      [{ recipient: 'grace@example.net', status: 'delivered', tag: 'news' }, []],
    ]
    for (const [query, expected] of searches) {
      assert.deepEqual(idsOf(await list(id, query)), expected, JSON.stringify(query))
      assert.deepEqual(idsOf(await list(id, { ...query, limit: '1' })), expected, JSON.stringify(query))
    }
  })

  test('filters by time', async () => {
    const { id } = await makeProject()
    const address = 'ada@example.net'
    const make = async () => (await makeMail(id, { address })).messageId
    const [oldest, middle, newest] = [await make(), await make(), await make()]
    /** The id of a message begins with the milliseconds since 1970. */
    const at = (messageId: string) =>
      new Date(Number.parseInt(messageId.replaceAll('-', '').slice(0, 12), 16)).toISOString()
    for (const recipient of [{}, { recipient: address }]) {
      assert.deepEqual(idsOf(await list(id, { ...recipient, from: at(middle) })), [newest, middle])
      assert.deepEqual(idsOf(await list(id, { ...recipient, to: at(middle) })), [oldest])
      assert.deepEqual(idsOf(await list(id, { ...recipient, from: at(middle), to: at(newest) })), [middle])
    }
    assertProblem(
      await admin.get(`/projects/${id}/messages?from=2026-12-31T23:59:60Z`),
      400,
      'invalid_parameter',
    )
  })

  test('continues past the number of messages that one page scans', async () => {
    const { id } = await makeProject()
    const oldest = await makeMail(id, { tags: ['rare'], status: 'bounced', address: 'rare@example.net' })
    await database.query(
      `with made as (
         insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
         select postern.uuid7(postern.now() + n * interval '1 millisecond'), $1, 1, 'news@example.com', 1, 1
           from generate_series(1, 4100) as n returning id)
       insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       select id, 0, $1, 'to', 'x@example.net', 'sent' from made`,
      [id],
    )
    for (const query of [{ tag: 'rare' }, { status: 'bounced' }, { recipient: 'rare@example.net' }]) {
      assert.deepEqual(idsOf(await list(id, query)), [oldest.messageId], JSON.stringify(query))
    }
    assert.equal((await list(id, { limit: '200' })).length, 4101)
    const first = (await admin.get(`/projects/${id}/messages?tag=rare`)).body
    assert.deepEqual(first.data, [])
    assert.notEqual(first.next_cursor, null)
  })

  test('shows queued mail of a held project as held, and finds it as held and as queued', async () => {
    const { id } = await makeProject()
    await makeMail(id, { status: 'queued', dispatch: 'ready' })
    await admin.post(`/projects/${id}/queue/hold`, { reason: 'Asked for' })
    const [found] = await list(id, { status: 'queued' })
    assert.equal(found?.recipients[0]?.status, 'held')
    assert.deepEqual(idsOf(await list(id, { status: 'held' })), [found?.id])
    await admin.post(`/projects/${id}/queue/release`, { reason: 'Asked for' })
    assert.deepEqual(await list(id, { status: 'held' }), [])
  })

  test('rejects invalid cursors and unknown parameters', async () => {
    const { id } = await makeProject()
    const cursors = [
      'x',
      '',
      Buffer.from('after:7').toString('base64url'),
      Buffer.from('after:').toString('hex'),
    ]
    for (const cursor of cursors) {
      assertProblem(await admin.get(`/projects/${id}/messages?cursor=${cursor}`), 400, 'invalid_parameter')
    }
    for (const query of [
      'q=x',
      'status=opened',
      'limit=0',
      'limit=201',
      'tag=%00',
      'recipient=a&recipient=b',
    ]) {
      assertProblem(await admin.get(`/projects/${id}/messages?${query}`), 400, 'invalid_parameter')
    }
    assertProblem(await admin.get('/projects/999999999/messages'), 404, 'not_found')
  })
})
