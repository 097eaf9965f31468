import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { cleanUp } from '../harness/cleanup.ts'
import { startProxy } from './nginx.ts'

/** An API that echoes the request headers and the size of the body. */
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

async function send(headers: http2.OutgoingHttpHeaders, body = '') {
  const request = session.request(
    { ':method': 'POST', ':path': '/v1/messages', ...headers },
    { endStream: false },
  )
  request.end(body)
  const [answer] = (await once(request, 'response')) as [http2.IncomingHttpHeaders]
  return { status: answer[':status'], body: await text(request) }
}

describe('the shipped nginx configuration', () => {
  it('overwrites X-Forwarded-For from the client', async () => {
    const { status, body } = await send({
      ':authority': 'mail.example.org',
      'x-forwarded-for': '192.0.2.1, 127.0.0.1',
    })
    assert.equal(status, 200)
    const { headers } = JSON.parse(body)
    assert.equal(headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(headers['x-forwarded-proto'], 'https')
    assert.equal(headers.host, 'mail.example.org')
    assert.equal(headers.connection, undefined)
  })

  it('forwards bodies above the message size limit, so that Postern can reject them', async () => {
    const size = 60 * 1024 * 1024
    const { body } = await send({ 'content-type': 'application/json' }, 'x'.repeat(size))
    assert.equal(JSON.parse(body).size, size)
  })

  it('redirects HTTP to HTTPS', async () => {
    const response = await fetch(`${proxy.clearUrl}/v1/messages?limit=1`, {
      method: 'POST',
      redirect: 'manual',
    })
    assert.equal(response.status, 308)
    assert.equal(response.headers.get('location'), 'https://mail.example.org/v1/messages?limit=1')
  })
})
