import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shardOf } from '../../platform/db/cells.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { type Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { startTwoCells } from '../../testing/harness/two-cells.ts'

const database = await testDatabase()
const { api, databaseOf, startWithout } = await startTwoCells(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const cells = [databaseOf(0), databaseOf(1023)].map((cell) => ({ ...cell, ...mailRows(cell) }))

interface Found {
  id: string
  project_id: number
  project_name: string
  status: string
}

/** Reads every page. A page can be short without being the last. */
async function search(query: Record<string, string>, client: Client = admin): Promise<Found[]> {
  const found: Found[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const parameters = new URLSearchParams({ ...query, ...(cursor === '' ? {} : { cursor }) })
    const { status, body, text } = await client.get(`/messages?${parameters}`)
    assert.equal(status, 200, text)
    assert.ok(body.data.length <= Number(query['limit'] ?? 50))
    found.push(...body.data)
    cursor = body.next_cursor
  }
  return found
}

const idsOf = (found: readonly Found[]) => found.map(({ id }) => id)

const cellOf = (projectId: number) => cells[shardOf(projectId) < 512 ? 0 : 1] ?? assert.fail()

/** New projects, at least one in each cell. */
async function makeProjects() {
  const projects = []
  while (new Set(projects.map(({ id }) => cellOf(id))).size < 2 || projects.length < 3)
    projects.push(await makeProject())
  return projects
}

/** A message in the project's cell, older by `minute` minutes. */
async function makeMail(
  projectId: number,
  {
    minute = 0,
    sender = 'news@acme.example',
    identityId = 999_999,
    ...mail
  }: {
    minute?: number
    sender?: string
    identityId?: number
    address?: string
    status?: string
  },
): Promise<string> {
  const { query } = cellOf(projectId)
  const [row] = await query<{ id: string }>(
    `insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
     values (postern.uuid7(postern.now() - $4 * interval '1 minute'), $1, $2, $3, 1, 100) returning id`,
    [projectId, identityId, sender, minute],
  )
  const { id } = row ?? assert.fail()
  await query(
    `insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
     values ($1, 0, $2, 'to', $3, $4)`,
    [id, projectId, mail.address ?? 'someone@example.net', mail.status ?? 'sent'],
  )
  return id
}

describe('messages.search', () => {
  test('finds the messages to an address in all projects and cells, newest first, at any page size', async () => {
    const projects = await makeProjects()
    const address = 'everyone@example.net'
    const sent: string[] = []
    for (let minute = 0; minute < 24; minute++) {
      const { id } = projects[minute % projects.length] ?? assert.fail()
      sent.push(await makeMail(id, { minute, address: minute % 2 ? address : address.toUpperCase() }))
      await makeMail(id, { minute })
    }
    for (const limit of ['1', '5', '23', '24', '25', '200']) {
      const found = await search({ recipient: 'Everyone@Example.net', limit })
      assert.deepEqual(idsOf(found), sent, `by ${limit}`)
      for (const { project_id, project_name } of found)
        assert.equal(project_name, projects.find(({ id }) => id === project_id)?.name)
    }
    assert.deepEqual(await search({ recipient: 'every@example.net' }), [])
  })

  test('finds messages by the address or the domain of their sender, also of a former domain', async () => {
    const [one = assert.fail(), other = assert.fail()] = await makeProjects()
    const domain = await makeDomain(one.id)
    await makeDomain(other.id, { name: domain.name })
    const [row] = await database.query<{ id: string }>(
      'select id from control.identities where project_id = $1 and name = $2',
      [one.id, domain.name],
    )
    const identityId = Number(row?.id)
    const make = (sender: string, minute: number, address?: string) =>
      makeMail(one.id, {
        sender: `${sender}@${domain.name}`,
        minute,
        identityId,
        ...(address && { address }),
      })
    const a = await make('Ada', 1)
    const b = await make('bob', 2, 'rare@example.net')
    await makeMail(one.id, { sender: 'ada@elsewhere.example', minute: 1 })
    assert.deepEqual(idsOf(await search({ sender: domain.name.toUpperCase() })), [a, b])
    assert.deepEqual(idsOf(await search({ sender: domain.name, limit: '1' })), [a, b])
    assert.deepEqual(idsOf(await search({ sender: `ada@${domain.name}` })), [a])
    assert.deepEqual(idsOf(await search({ sender: domain.name, recipient: 'rare@example.net' })), [b])
    assert.deepEqual(idsOf(await search({ sender: 'nobody.example', recipient: 'rare@example.net' })), [])
    assert.deepEqual(await search({ sender: 'nobody.example' }), [])
    await admin.delete(`/projects/${one.id}/domains/${domain.id}`, { reason: 'Gone' })
    assert.deepEqual(idsOf(await search({ sender: domain.name })), [a, b])
  })

  test('filters by status and time, separately and combined', async () => {
    const [{ id } = assert.fail()] = await makeProjects()
    const recipient = 'filtered@example.net'
    const make = (status: string, minute: number) => makeMail(id, { address: recipient, status, minute })
    const [bounced, sent, queued] = [
      await make('bounced', 30),
      await make('sent', 20),
      await make('queued', 10),
    ]
    const at = (minute: number) => new Date(Date.now() - minute * 60_000).toISOString()
    const cases: [Record<string, string>, string[]][] = [
      [{}, [queued, sent, bounced]],
      [{ status: 'bounced' }, [bounced]],
      [{ status: 'complained' }, []],
      [{ from: at(25) }, [queued, sent]],
      [{ to: at(25) }, [bounced]],
      [{ from: at(25), to: at(15) }, [sent]],
      [{ from: at(25), status: 'bounced' }, []],
      [{ status: 'held' }, []],
    ]
    for (const [query, expected] of cases)
      assert.deepEqual(idsOf(await search({ recipient, ...query })), expected, JSON.stringify(query))
  })

  test('shows and finds queued mail of a held project as held', async () => {
    const projects = await makeProjects()
    const { id } = projects.find((project) => cellOf(project.id) === cells[0]) ?? assert.fail()
    const recipient = 'held@example.net'
    const message = await makeMail(id, { address: recipient, status: 'queued' })
    const statusOf = async (query: Record<string, string>) =>
      (await search({ recipient, ...query })).map(({ status }) => status)
    assert.deepEqual(await statusOf({}), ['queued'])
    assert.deepEqual(await statusOf({ status: 'held' }), [])
    await admin.post(`/projects/${id}/queue/hold`, { reason: 'Asked for' })
    assert.deepEqual(await statusOf({}), ['held'])
    assert.deepEqual(idsOf(await search({ recipient, status: 'held' })), [message])
    assert.deepEqual(idsOf(await search({ recipient, status: 'queued' })), [message])
  })

  test('continues past the number of messages that one page scans, in both cells', async () => {
    const projects = await makeProjects()
    const recipient = 'flood@example.net'
    const rare: string[] = []
    for (const [index, cell] of cells.entries()) {
      const { id } = projects.find((project) => cellOf(project.id) === cell) ?? assert.fail()
      rare.push(await makeMail(id, { minute: 300 + index, address: recipient, status: 'bounced' }))
      await cell.query(
        `with made as (
           insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
           select postern.uuid7(postern.now() - n * interval '1 second'), $1, 1, 'news@acme.example', 1, 1
             from generate_series(1, $2::int) as n returning id)
         insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
         select id, 0, $1, 'to', $3, 'sent' from made`,
        [id, 2_500 + 2_000 * index, recipient],
      )
    }
    assert.deepEqual(idsOf(await search({ recipient, status: 'bounced' })), rare)
    const first = (await admin.get(`/messages?recipient=${recipient}&status=bounced`)).body
    assert.deepEqual(first.data, [])
    assert.notEqual(first.next_cursor, null)
    assert.equal(new Set(idsOf(await search({ recipient, limit: '200' }))).size, 2_500 + 4_500 + 2)
  })

  test('names a cell that cannot be reached, and finds the mail of the others', async () => {
    const [one, other] = cells
    const projects = await makeProjects()
    const recipient = 'partly@example.net'
    const ids = []
    for (const cell of [one, other]) {
      const { id } = projects.find((project) => cellOf(project.id) === cell) ?? assert.fail()
      ids.push(await makeMail(id, { address: recipient }))
    }
    const lessAdmin = await signedIn(await startWithout())
    const { status, body } = await lessAdmin.get(`/messages?recipient=${recipient}`)
    assert.equal(status, 200)
    assert.deepEqual(body.unreachable_cells, ['b'])
    assert.deepEqual(idsOf(body.data), [ids[0]])
  })

  test('records every page', async () => {
    const [{ id } = assert.fail()] = await makeProjects()
    for (const minute of [1, 2, 3]) await makeMail(id, { minute, address: 'paged@example.net' })
    const from = '2026-01-01T00:00:00Z'
    await search({ recipient: 'paged@example.net', status: 'sent', from, limit: '2' })
    const { body } = await admin.get(`/audit/lookups?actor=${admin.userId}&limit=2`)
    assert.equal(body.data.length, 2)
    for (const lookup of body.data) {
      const { operation, question, project_ids, actor_id } = lookup
      assert.deepEqual(
        { operation, question, project_ids, actor_id },
        {
          operation: 'messages.search',
          question: `recipient paged@example.net, status sent, from ${from}`,
          project_ids: [id],
          actor_id: admin.userId,
        },
      )
    }
  })

  test('requires a recipient or a sender, and rejects invalid values', async () => {
    for (const query of [
      '',
      'status=sent',
      'from=2026-01-01T00:00:00Z',
      'recipient=a@example.net&status=opened',
      'recipient=a@example.net&from=yesterday',
      'recipient=a@example.net&tag=x',
      'recipient=a@example.net&limit=0',
      'recipient=a@example.net&cursor=x',
      'sender=a%20b',
      'sender=@',
      'sender=com',
    ])
      assertProblem(await admin.get(`/messages?${query}`), 400, 'invalid_parameter')
  })
})
