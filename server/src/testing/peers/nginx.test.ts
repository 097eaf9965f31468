import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { cleanUp } from '../harness/cleanup.ts'
import { startProxy } from './nginx.ts'

/** An API that tells what it was asked. */
const api = http.createServer((request, response) => {
  void text(request).then((body) =>
    response.end(JSON.stringify({ headers: request.headers, size: body.length })),
  )
})
api.listen(0, '127.0.0.1')
await once(api, 'listening')
cleanUp(async () => api.close())
const proxy = await startProxy(`http://127.0.0.1:${(api.address() as AddressInfo).port}`)
const session = http2.connect(proxy.tlsUrl, { ca: proxy.authority })
cleanUp(async () => session.close())

async function ask(headers: http2.OutgoingHttpHeaders, body = '') {
  const request = session.request(
    { ':method': 'POST', ':path': '/v1/messages', ...headers },
    { endStream: false },
  )
  request.end(body)
  const [answer] = (await once(request, 'response')) as [http2.IncomingHttpHeaders]
  return { status: answer[':status'], told: await text(request) }
}

describe('nginx as it is shipped', () => {
  it('says who calls, whatever the caller says', async () => {
    const { status, told } = await ask({
      ':authority': 'mail.example.org',
      'x-forwarded-for': '192.0.2.1, 127.0.0.1',
    })
    assert.equal(status, 200)
    const { headers } = JSON.parse(told)
    assert.equal(headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(headers['x-forwarded-proto'], 'https')
    assert.equal(headers.host, 'mail.example.org')
    assert.equal(headers.connection, undefined)
  })

  it('lets the largest mail through, and leaves it to Postern to refuse a larger one', async () => {
    const size = 60 * 1024 * 1024
    const { told } = await ask({ 'content-type': 'application/json' }, 'x'.repeat(size))
    assert.equal(JSON.parse(told).size, size)
  })

  it('serves nothing in the clear', async () => {
    const response = await fetch(`${proxy.clearUrl}/v1/messages?limit=1`, {
      method: 'POST',
      redirect: 'manual',
    })
    assert.equal(response.status, 308)
    assert.equal(response.headers.get('location'), 'https://mail.example.org/v1/messages?limit=1')
  })
})
