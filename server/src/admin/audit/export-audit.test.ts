import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startApi } from '../../testing/api.ts'
import { cleanUp } from '../../testing/cleanup.ts'
import { signedIn } from '../../testing/client.ts'
import { testDatabase } from '../../testing/database.ts'

/**
 * An export is as long as the audit, and its reader as slow as they please. When the database was asked for more is
 * told by itself, so that neither the reader nor the API has to be believed.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)

// 60 MB: many times what the sockets of both sides hold.
const rows = 40_000
await database.query(
  `insert into control.audit (chain, seq, at, actor_id, actor_digest, request_id, operation, project_id, resource_type,
                              resource_id, after, xid, prev_hash, hash)
   select 7, n, now(), 1, hash, 'r', 'projects.edit', 7, 'project', '7',
          jsonb_build_object('name', repeat('x', 1000)), pg_current_xact_id(), hash, hash
     from generate_series(1, $1) as n, decode(repeat('00', 32), 'hex') as hash`,
  [rows],
)
await database.query('vacuum analyze control.audit')

/** A reader who has seen that something comes, and takes nothing until told to. */
async function openExport(): Promise<Socket> {
  const { hostname, port } = new URL(api.url)
  const socket = connect(Number(port), hostname)
  cleanUp(async () => socket.destroy())
  await once(socket, 'connect')
  const lines = ['GET /v1/admin/audit/export?project_id=7 HTTP/1.1', 'Host: localhost', 'Connection: close']
  socket.write(`${lines.join('\r\n')}\r\nAuthorization: ${admin.headers.authorization}\r\n\r\n`)
  await once(socket, 'readable')
  return socket
}

/** When the API last asked the database for anything, once that has been two seconds ago. */
async function lastAskedAtRest(): Promise<number> {
  for (;;) {
    const [row] = await database.query<{ asked: Date | null; idle_ms: number }>(
      `select max(query_start) as asked, extract(epoch from clock_timestamp() - max(query_start)) * 1000 as idle_ms
         from pg_stat_activity where datname = current_database() and usename = 'postern_app'`,
    )
    if (row?.asked && Number(row.idle_ms) > 2000) return row.asked.getTime()
    await sleep(100)
  }
}

const transactionsOpen = async (): Promise<unknown[]> =>
  database.query(
    `select state, query from pg_stat_activity where datname = current_database() and usename = 'postern_app'
        and xact_start is not null`,
  )

const linesOf = async (socket: Socket): Promise<number> => {
  let [lines, end] = [0, '']
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    for (const byte of chunk) if (byte === 10) lines++
    end = (end + chunk.toString('latin1')).slice(-400)
  }
  assert.match(end, /"type":"end","rows":40000,/)
  return lines
}

describe('audit.export', () => {
  test('reads no further than its reader does, holds no transaction open meanwhile, and then goes on to the end', async () => {
    const rssBefore = process.memoryUsage().rss
    const socket = await openExport()
    const stalledAt = await lastAskedAtRest()
    assert.deepEqual(await transactionsOpen(), [])
    const grownMb = (process.memoryUsage().rss - rssBefore) / 2 ** 20
    assert.ok(grownMb < 100, `${grownMb.toFixed(0)} MB more`)
    // What the sockets hold is read without the database; then the rest is asked for.
    assert.ok((await linesOf(socket)) > rows)
    assert.ok((await lastAskedAtRest()) > stalledAt, 'everything had been read before')
  })

  test('stops when its reader hangs up', async () => {
    const socket = await openExport()
    socket.resume()
    await once(socket, 'data')
    socket.destroy()
    const hungUpAt = Date.now()
    // A page that was being read, and one that is read ahead.
    assert.ok((await lastAskedAtRest()) - hungUpAt < 1000, 'it went on reading')
    assert.deepEqual(await transactionsOpen(), [])
  })

  test('leaves the connections to others while readers stall', async () => {
    const sockets = await Promise.all(Array.from({ length: 12 }, openExport))
    await lastAskedAtRest()
    assert.deepEqual(await transactionsOpen(), [])
    assert.equal((await admin.get('/audit?limit=1')).status, 200)
    for (const socket of sockets) socket.destroy()
  })
})
