import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { PosternError } from '../../platform/errors.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { type Cell, cellIn } from './cells.ts'
import { readCells } from './read-cells.ts'

const database = await testDatabase()
const opened = openDatabase(database)
const cell = (name: string, url?: string): Cell =>
  cellIn(url === undefined ? opened : openDatabase({ ...database, url, cellUrl: undefined }), { name })

/** Accepts connections and never answers. */
async function silentServer(): Promise<string> {
  const server = createServer((socket) => void socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp(async () => void server.close())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const url = new URL(database.url)
  url.host = `127.0.0.1:${address.port}`
  url.search = ''
  return url.href
}

const one = async () => 1

describe('a read of all cells', () => {
  test('returns the answers of those that answer, and names the others', async () => {
    const cells = { all: [cell('a'), cell('b', await silentServer()), cell('c')] as const }
    assert.deepEqual(await readCells(cells, 300, one), {
      answers: [1, 1],
      unreachable: ['b'],
    })
  })

  test('limits each statement', async () => {
    const cells = { all: [cell('a'), cell('b')] as const }
    const slow = await readCells(cells, 500, async (tx, { name }) => {
      await sql.raw(`select pg_sleep(${name === 'b' ? 60 : 0})`).execute(tx)
      return name
    })
    assert.deepEqual(slow, { answers: ['a'], unreachable: ['b'] })
  })

  test('fails if no cell answers, or for another reason', async () => {
    const isUnavailable = (error: unknown) => error instanceof PosternError && error.code === 'unavailable'
    await assert.rejects(readCells({ all: [cell('b', await silentServer())] }, 300, one), isUnavailable)
    const broken = () => Promise.reject(new Error('a bug'))
    await assert.rejects(readCells({ all: [cell('a'), cell('c')] }, 5_000, broken), /a bug/)
  })
})
