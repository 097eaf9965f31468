import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../server/src/testing/harness/waiting.ts'
import { Caller } from './caller.ts'
import { mailOf, openCellStage, type Shop } from './cells.ts'
import { body, type Message, type MessageEvent } from './stage.ts'

/**
 * The control database is on one PostgreSQL server. Mail is on two others: two cells, each with some of the projects
 * and a replica of the control database. Mail is sent in both cells; then cell a's server is killed. Cell b and the
 * control side are not affected. When cell a is back, none of its accepted messages are lost, and it receives the
 * changes made in the meantime.
 */
const stage = await openCellStage()
const { admin, sink, a, b, shopA, shopB } = stage
const atA = new Caller(a.url, shopA.secret)
const atB = new Caller(b.url, shopB.secret)
const projectPath = ({ projectId }: Shop) => `/admin/projects/${projectId}`

let mails = 0
const nextAddress = (cell: string) => `customer-${cell}-${++mails}@example.net`

async function send(shop: Caller, whose: Shop, to: string): Promise<string> {
  return (await body<{ id: string }>(202, shop.post('/messages', mailOf(whose, to)))).id
}

const delivered = (shop: Caller, id: string) =>
  eventually(`message ${id} is delivered`, async () => {
    const answer = await shop.get(`/messages/${id}`)
    return answer.status === 200 && (answer.body as Message).status === 'delivered'
  })

const receivedBy = (address: string): number => sink.received.filter(({ to }) => to.includes(address)).length

/** Sends messages at a fixed interval until stopped. */
function keepSending(shop: Caller, whose: Shop, everyMs: number) {
  const sent: { id: string; to: string }[] = []
  const failed: unknown[] = []
  let isOver = false
  const run = async () => {
    while (!isOver) {
      const to = nextAddress('load')
      const answer = await shop
        .post('/messages', mailOf(whose, to))
        .catch((error: unknown) => ({ status: error, body: null }))
      if (answer.status === 202) sent.push({ id: answer.body.id, to })
      else failed.push(answer)
      await sleep(everyMs)
    }
  }
  const running = run()
  return {
    sent,
    failed,
    async stop() {
      isOver = true
      await running
    },
  }
}

describe('two cells and one control', () => {
  it('are joined by commands, and projects created in control are replicated to the cells', async () => {
    assert.match(stage.said.join(''), /Cell "a" now replicates the control database\.\nCell "b" now/)
    for (const { query } of [a, b]) {
      const projects = await query<{ id: string }>('select id from control.projects order by id')
      assert.ok(projects.length >= 2)
      assert.deepEqual(await query('select from control.audit limit 1'), [], 'the audit stays in control')
      assert.deepEqual(await query('select from control.users limit 1'), [], 'users stay in control')
    }
  })

  it("store their own projects' mail, whichever cell received the request", async () => {
    const own = nextAddress('a')
    const foreign = nextAddress('a')
    const ids = [
      await send(atA, shopA, own),
      await send(new Caller(b.url, shopA.secret), shopA, foreign),
      await send(atB, shopB, nextAddress('b')),
    ]
    for (const [at, id] of ids.entries()) await delivered(at < 2 ? atA : atB, id)
    assert.deepEqual([receivedBy(own), receivedBy(foreign)], [1, 1])
    const has = async ({ query }: typeof b, id: string) =>
      (await query('select from mail.messages where id = $1', [id])).length === 1
    for (const [at, id] of ids.entries()) {
      const [here, there] = at < 2 ? [a, b] : [b, a]
      assert.deepEqual([await has(here, id), await has(there, id)], [true, false])
    }
    const { data } = await body<{ data: MessageEvent[] }>(200, atA.get(`/messages/${ids[0]}/events`))
    assert.deepEqual(data.map(({ type }) => type).sort(), [
      'message.accepted',
      'message.delivered',
      'message.sent',
    ])
    // On the control side, the messages can be read through the API and are counted in the relayed statistics.
    await body(200, admin.get(`${projectPath(shopA)}/messages/${ids[0]}`))
    await body(200, admin.get(`${projectPath(shopB)}/usage`))
    for (const [shop, whose] of [[atA, shopA] as const, [atB, shopB] as const]) {
      const gone = nextAddress('gone')
      sink.treat(gone, { at: 'rcpt', answer: '550 5.1.1 No such user' })
      await send(shop, whose, gone)
      await eventually(
        'control has received the bounce',
        async () => (await body<{ bounced: number }>(200, admin.get(projectPath(whose)))).bounced === 1,
      )
    }
  })
})

describe('an address suppressed for all projects', () => {
  it('is replicated to both cells, which do not send to it', async () => {
    const address = nextAddress('never')
    await body(201, admin.post('/admin/suppressions', { address, reason: 'Demands no mail' }))
    for (const { query } of [a, b]) {
      await eventually('the cell has the address', async () => {
        const rows = await query('select from control.platform_suppressions where address = $1', [address])
        return rows.length === 1
      })
    }
    for (const [shop, whose] of [[atA, shopA] as const, [atB, shopB] as const]) {
      const id = await send(shop, whose, address)
      const { status } = await body<{ status: string }>(200, shop.get(`/messages/${id}`))
      assert.equal(status, 'suppressed')
    }
    assert.equal(receivedBy(address), 0)
  })
})

describe('while the server of cell a is down', () => {
  const acceptedByA: { id: string; to: string }[] = []

  it('cell b and control are not affected', async (t) => {
    const load = keepSending(atB, shopB, 20)
    await eventually('cell b has accepted 60 messages', () => load.sent.length >= 60)
    // In one transaction, so most of them are still queued when the server is killed.
    const addresses = Array.from({ length: 200 }, () => nextAddress('a'))
    const batch = { messages: addresses.map((to) => mailOf(shopA, to)) }
    const { data } = await body<{ data: { id: string }[] }>(202, atA.post('/messages/batch', batch))
    acceptedByA.push(...data.map(({ id }, at) => ({ id, to: addresses[at] ?? '' })))
    await a.cluster.kill()
    const sentBefore = load.sent.length
    const hadLeft = acceptedByA.filter(({ to }) => receivedBy(to) > 0).length
    t.diagnostic(
      `cell a: ${hadLeft} of the last ${acceptedByA.length} accepted messages had been handed over when it was killed`,
    )
    const refused = await atA.post('/messages', mailOf(shopA, nextAddress('a')))
    assert.deepEqual([refused.status, refused.body.error], [503, 'unavailable'])

    const locked = { is_locked: true, reason: 'Something is wrong there' }
    const preview = await body<{ effects: string[] }>(
      200,
      admin.patch(`${projectPath(shopA)}?dry_run=true`, locked),
    )
    assert.match(preview.effects.join('\n'), /Queued messages: unknown at the moment/)
    await body(200, admin.patch(projectPath(shopA), locked))
    await body(200, admin.patch(projectPath(shopB), { name: 'Shop of b', reason: 'Called so from now on' }))
    await eventually('cell b has accepted another 60 messages', () => load.sent.length >= sentBefore + 60)
    await load.stop()

    assert.deepEqual(load.failed, [])
    await eventually('all mail of cell b is delivered', () => load.sent.every(({ to }) => receivedBy(to) > 0))
    await delivered(atB, load.sent.at(-1)?.id ?? '')
    assert.ok(load.sent.every(({ to }) => receivedBy(to) === 1))
  })

  it('no message is lost: cell a delivers its accepted messages after a restart, and applies the lock', async (t) => {
    await a.cluster.start()
    const refusal = await eventually('cell a applies the lock', async () => {
      const answer = await atA.post('/messages', mailOf(shopA, nextAddress('a')))
      return answer.status === 403 && answer.body.error
    })
    assert.equal(refusal, 'project_locked')
    await body(200, admin.patch(projectPath(shopA), { is_locked: false, reason: 'It is well again' }))
    for (const { id } of acceptedByA) await delivered(atA, id)
    assert.ok(acceptedByA.every(({ to }) => receivedBy(to) > 0))
    const twice = acceptedByA.filter(({ to }) => receivedBy(to) > 1).length
    t.diagnostic(`cell a: ${acceptedByA.length} accepted before the kill, 0 lost, ${twice} delivered twice`)
  })

  it('a lock set in control takes effect in the cell', async () => {
    await body(200, admin.patch(projectPath(shopB), { is_locked: true, reason: 'Complaints' }))
    await eventually('cell b refuses mail of the locked project', async () => {
      const { status } = await atB.post('/messages', mailOf(shopB, nextAddress('b')))
      assert.ok(status === 202 || status === 403)
      return status === 403
    })
  })

  it('administrative changes are in the audit log, and are replicated to both cells', async () => {
    const { data } = await body<{ data: { project_id: number; operation: string }[] }>(
      200,
      admin.get('/admin/audit?operation=projects.edit'),
    )
    const ofProject = (id: number) => data.filter(({ project_id }) => project_id === id).length
    // The edits: service MTAs allowed, locked, unlocked; service MTAs allowed, renamed, locked.
    assert.deepEqual([ofProject(shopA.projectId), ofProject(shopB.projectId)], [3, 3])
    for (const { query } of [a, b]) {
      await eventually('both cells have both edits', async () => {
        const rows = await query<{ name: string; is_locked: boolean }>(
          'select name, is_locked from control.projects where id = any($1) order by name',
          [[shopA.projectId, shopB.projectId]],
        )
        return rows[1]?.name === 'Shop of b' && !rows[0]?.is_locked
      })
    }
  })
})

describe("while cell a's replica of control is outdated because its subscription is stopped", () => {
  const limitSeconds = 20
  let url = ''
  let there: Caller
  const accepted: { id: string; to: string }[] = []
  let scheduled = { id: '', to: '' }

  const isCopyStale = async () => {
    const answer = await fetch(new URL('/readyz', url))
    assert.equal(answer.status, 200, 'reports are still accepted, so the process is ready')
    return ((await answer.json()) as { replica?: string }).replica === 'stale'
  }
  /**
   * Whether the replica's age, measured by the cell server's clock, exceeds the limit. Queried before the request it
   * applies to.
   */
  const isBeyondLimit = async () => {
    const [row] = await a.query<{ is_beyond: boolean }>(
      `select now() - at > $1 * interval '1 second' as is_beyond from control.heartbeat`,
      [limitSeconds + 1],
    )
    return row?.is_beyond ?? false
  }

  it('mail from a project that has since been locked is accepted until the age limit at the latest', async () => {
    url = await stage.restartA({ POSTERN_CONTROL_REPLICA_MAX_AGE_SECONDS: String(limitSeconds) })
    there = new Caller(url, shopA.secret)
    await eventually('the replica is up to date', async () => !(await isCopyStale()))
    const to = nextAddress('a')
    const [clock] = await a.query<{ at: string }>(
      `select to_char((now() + $1 * interval '1 second') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at`,
      [limitSeconds + 10],
    )
    const later = { ...mailOf(shopA, to), send_at: clock?.at }
    scheduled = { id: (await body<{ id: string }>(202, there.post('/messages', later))).id, to }

    await a.query('alter subscription postern_a disable')
    await body(200, admin.patch(projectPath(shopA), { is_locked: true, reason: 'Complaints' }))
    let refusals = 0
    while (refusals < 5) {
      const mustRefuse = await isBeyondLimit()
      const address = nextAddress('a')
      const answer = await there.post('/messages', mailOf(shopA, address))
      if (answer.status === 202) {
        accepted.push({ id: answer.body.id, to: address })
        assert.equal(mustRefuse, false, 'accepted although the replica is too old')
        assert.equal(refusals, 0, 'accepted after a refusal')
      } else {
        assert.deepEqual([answer.status, answer.body.error], [503, 'unavailable'])
        refusals++
      }
      await sleep(200)
    }
    assert.ok(await isCopyStale())
  })

  it('no mail is sent after the age limit', async () => {
    await eventually('the scheduled message is ready', async () => {
      const rows = await a.query<{ state: string }>('select state from mail.dispatch where message_id = $1', [
        scheduled.id,
      ])
      assert.equal(rows.length, 1)
      return rows[0]?.state === 'ready'
    })
    // The dispatcher polls four times per second.
    await sleep(2_000)
    assert.equal(receivedBy(scheduled.to), 0)
    const rows = await a.query('select from mail.attempts where message_id = $1', [scheduled.id])
    assert.equal(rows.length, 0)
  })

  it('cell b is not affected, and a process in cell a still serves its projects', async () => {
    await body(200, admin.patch(projectPath(shopB), { is_locked: false, reason: 'It is well again' }))
    const foreign = new Caller(url, shopB.secret)
    const id = await eventually('a process of cell a accepts mail for cell b', async () => {
      const answer = await foreign.post('/messages', mailOf(shopB, nextAddress('b')))
      return answer.status === 202 && (answer.body.id as string)
    })
    await delivered(atB, id)
  })

  it('the lock applies when the subscription is enabled again, and no message is lost', async () => {
    await a.query('alter subscription postern_a enable')
    await eventually('cell a applies the lock', async () => {
      const answer = await there.post('/messages', mailOf(shopA, nextAddress('a')))
      return answer.status === 403 && answer.body.error === 'project_locked'
    })
    assert.equal(await isCopyStale(), false)
    assert.equal(receivedBy(scheduled.to), 0, 'the mail of a locked project is held')
    await body(200, admin.patch(projectPath(shopA), { is_locked: false, reason: 'It is well again' }))
    for (const { id } of [...accepted, scheduled]) await delivered(there, id)
    for (const { to } of [...accepted, scheduled]) assert.equal(receivedBy(to), 1)
    await send(there, shopA, nextAddress('a'))
  })
})
