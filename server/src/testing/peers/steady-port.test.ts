import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { steadyPort } from './steady-port.ts'

const module = new URL('./steady-port.ts', import.meta.url).href

/** Replaces `randomInt`, so that the first choices are predictable. */
const choosing = (ports: number[]): string => `
  import crypto from 'node:crypto'
  import { syncBuiltinESMExports } from 'node:module'
  const ports = ${JSON.stringify(ports)}
  const random = crypto.randomInt
  crypto.randomInt = (...range) => ports.shift() ?? random(...range)
  syncBuiltinESMExports()
  const { steadyPort } = await import(${JSON.stringify(module)})
  console.log(await steadyPort())
`
const chosenElsewhere = async (ports: number[]): Promise<number> => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...['--input-type=module', '--eval', choosing(ports)],
  ])
  return Number(stdout)
}

test('reserves a port for one process, even if nothing listens there', async () => {
  const port = await steadyPort()
  const free = await chosenElsewhere([])
  assert.equal(await chosenElsewhere([port, free]), free)
  // The reservation ended with the process.
  assert.equal(await chosenElsewhere([free]), free)
})

test('does not return a port with a listener', async () => {
  const free = await chosenElsewhere([])
  const server = createServer().listen(free, '127.0.0.1')
  await once(server, 'listening')
  assert.notEqual(await chosenElsewhere([free]), free)
  server.close()
})
