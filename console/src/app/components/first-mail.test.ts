import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { firstMailIn, type Language } from './first-mail.ts'

const run = promisify(execFile)

/** What it was sent, as an API that accepts everything. */
const requests: { headers: IncomingMessage['headers']; body: unknown }[] = []
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    requests.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"queued"}')
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
after(() => void server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/messages`

const runners: Record<Language, (code: string) => Promise<{ stdout: string }>> = {
  curl: (code) => run('bash', ['-c', code]),
  typescript: (code) => run(process.execPath, ['--input-type=module-typescript', '--eval', code]),
  python: (code) => run('python3', ['-c', code]),
}

describe('the code that sends a first mail', () => {
  for (const [language, start] of Object.entries(runners)) {
    test(`runs in ${language}, and keeps an apostrophe in an address`, async () => {
      const mail = { secret: 'pk_live_a', from: 'hello@shop.example.org', to: "o'neil@example.net" }
      const { stdout } = await start(firstMailIn[language as Language](mail, url))
      assert.match(stdout, /queued/)
      const request = requests.pop()
      assert.equal(request?.headers.authorization, 'Bearer pk_live_a')
      assert.match(String(request?.headers['content-type']), /^application\/json/)
      assert.deepEqual(request?.body, {
        from: 'hello@shop.example.org',
        to: ["o'neil@example.net"],
        subject: 'Hello',
        text: 'My first mail.',
      })
    })
  }
})
