import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import pg from 'pg'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'

/**
 * An export is as long as the audit log, and a client can read it arbitrarily slowly. The test counts the pages read
 * by counting the statements sent to the database driver.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)

// 60 MB: many times the size of the socket buffers on both sides.
const rows = 40_000
// Pages of a thousand rows each, and an empty page at the end.
const allPages = 41
await database.query(
  `insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, project_id,
                              resource_type, resource_id, after, xid, prev_hash, hash)
   select 7, n, now(), 'person', 1, hash, 'r', 'projects.edit', 7, 'project', '7',
          jsonb_build_object('name', repeat('x', 1000)), pg_current_xact_id(), hash, hash
     from generate_series(1, $1) as n, decode(repeat('00', 32), 'hex') as hash`,
  [rows],
)
await database.query('vacuum analyze control.audit')

/** The number of pages that the API has queried. */
let pages = 0
const { query } = pg.Client.prototype
Object.assign(pg.Client.prototype, {
  query(this: pg.Client, ...args: unknown[]) {
    if (/ from control\.audit a\s.* limit /s.test(String(args[0]))) pages++
    return Reflect.apply(query, this, args)
  },
})

const responses: ServerResponse[] = []
subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
  if (request.url?.startsWith('/v1/admin/audit/export')) responses.push(response)
})

/** A client that has received the first bytes and reads nothing more until a test reads the socket. */
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

/** Waits until the most recent exports are blocked by their clients. */
const stalled = (exports: number): Promise<boolean> =>
  eventually('every response waits for its client', () =>
    responses.slice(-exports).every((response) => response.writableNeedDrain),
  )

/**
 * Waits until the number of queried pages is unchanged for twenty consecutive checks, so that a slow export does not
 * fail a test.
 */
async function pagesAtRest(): Promise<number> {
  let [seen, unchanged] = [pages, 0]
  const isAtRest = () => {
    unchanged = pages === seen ? unchanged + 1 : 0
    seen = pages
    return unchanged >= 20
  }
  await eventually('no more pages are queried', isAtRest, { everyMs: 100 })
  return seen
}

const noTransactionIsOpen = (): Promise<boolean> =>
  eventually('no transaction is open', async () => {
    const open = await database.query(
      `select from pg_stat_activity where datname = current_database() and usename = 'postern_app'
          and xact_start is not null`,
    )
    return open.length === 0
  })

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
  test('pauses for a slow client without an open transaction, and then continues to the end', async () => {
    const rssBefore = process.memoryUsage().rss
    const before = pages
    const socket = await openExport()
    await stalled(1)
    const read = (await pagesAtRest()) - before
    assert.ok(read < allPages, `${read} pages were read ahead of the client`)
    await noTransactionIsOpen()
    const grownMb = (process.memoryUsage().rss - rssBefore) / 2 ** 20
    assert.ok(grownMb < 100, `${grownMb.toFixed(0)} MB more`)
    assert.ok((await linesOf(socket)) > rows)
    assert.equal(pages - before, allPages)
  })

  test('stops when the client disconnects', async () => {
    const socket = await openExport()
    const closed = once(responses.at(-1) ?? assert.fail(), 'close')
    socket.resume()
    await once(socket, 'data')
    socket.destroy()
    await closed
    const read = pages
    // The current page, and one page that is read ahead.
    const readAfter = (await pagesAtRest()) - read
    assert.ok(readAfter <= 2, `${readAfter} pages were read after the disconnect`)
    await noTransactionIsOpen()
  })

  test('does not occupy database connections while clients stall', async () => {
    const sockets = await Promise.all(Array.from({ length: 12 }, openExport))
    await stalled(sockets.length)
    await noTransactionIsOpen()
    assert.equal((await admin.get('/audit?limit=1')).status, 200)
    for (const socket of sockets) socket.destroy()
  })
})
