import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { startProxy } from '../../testing/peers/nginx.ts'

/**
 * RFC 9110 §9.3.5 defines no semantics for the body of a DELETE, so a proxy might drop the body and with it the
 * reason that deletions require.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const token = await api.tokenOf(admin.email)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const proxy = await startProxy(api.url)
const session = http2.connect(proxy.tlsUrl, { ca: proxy.authority })
cleanUp(async () => session.close())
const project = await makeProject()

type Send = (method: string, path: string, body?: string) => Promise<Answer>

const headersOf = (body: string | undefined) => ({
  authorization: `Bearer ${token}`,
  ...(body === undefined ? {} : { 'content-type': 'application/json' }),
})

const asAnswer = (status: number, headers: Headers, content: string): Answer => ({
  status,
  headers,
  text: content,
  body: content === '' ? null : JSON.parse(content),
})

const asHeaders = (headers: Record<string, string | string[] | undefined>): Headers =>
  new Headers(
    Object.entries(headers)
      .filter(([name]) => !name.startsWith(':'))
      .map(([name, value]) => [name, String(value)]),
  )

const overHttp1 =
  (url: string, { isChunked }: { isChunked: boolean }): Send =>
  async (method, path, body) => {
    const headers = headersOf(body)
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const request = http.request(`${url}/v1/admin${path}`, {
      method,
      headers: isChunked ? { ...headers, 'transfer-encoding': 'chunked' } : { ...headers, ...length },
    })
    request.end(body)
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    return asAnswer(response.statusCode ?? 0, asHeaders(response.headers), await text(response))
  }

const overHttp2 =
  ({ tellsLength }: { tellsLength: boolean }): Send =>
  async (method, path, body) => {
    const length = body !== undefined && tellsLength ? { 'content-length': Buffer.byteLength(body) } : {}
    const request = session.request(
      { ':method': method, ':path': `/v1/admin${path}`, ...headersOf(body), ...length },
      // By default, Node.js does not expect a body with DELETE either.
      { endStream: body === undefined },
    )
    if (body !== undefined) request.end(body)
    const [headers] = (await once(request, 'response')) as [http2.IncomingHttpHeaders]
    return asAnswer(Number(headers[':status']), asHeaders(headers), await text(request))
  }

const ways: Record<string, Send> = {
  'straight to the API': overHttp1(api.url, { isChunked: false }),
  'straight to the API in chunks': overHttp1(api.url, { isChunked: true }),
  'through an HTTP/1.1 proxy': overHttp1(proxy.plainUrl, { isChunked: false }),
  'in chunks through an HTTP/1.1 proxy': overHttp1(proxy.plainUrl, { isChunked: true }),
  'over HTTP/2': overHttp2({ tellsLength: true }),
  'over HTTP/2 without a Content-Length': overHttp2({ tellsLength: false }),
}

describe('the body of a DELETE', () => {
  for (const [way, send] of Object.entries(ways)) {
    test(`carries the reason, sent ${way}`, async () => {
      const { resource } = await makeEndpoint(project.id)
      const path = `/projects/${project.id}/endpoints/${resource.id}`
      const reason = `Goes away, sent ${way}`

      const answer = await send('DELETE', path, JSON.stringify({ reason }))

      assert.deepEqual([answer.status, answer.text], [204, ''])
      const row = await auditRowOf(database, answer)
      assert.deepEqual([row?.operation, row?.reason], ['endpoints.delete', reason])
      assertProblem(await admin.get(path), 404, 'not_found')
    })
  }

  for (const way of ['straight to the API', 'through an HTTP/1.1 proxy', 'over HTTP/2']) {
    test(`can be missing, sent ${way}: the reason is then missing`, async () => {
      const { resource } = await makeEndpoint(project.id)
      const path = `/projects/${project.id}/endpoints/${resource.id}`

      assertProblem((await ways[way]?.('DELETE', path)) ?? assert.fail(), 422, 'reason_required')
      assert.equal((await admin.get(path)).status, 200)
    })
  }
})

describe('a response changed by a proxy', () => {
  test('still matches with an ETag that was weakened by compression', async () => {
    const throughProxy = new Client(proxy.plainUrl, token)
    const { resource } = await makeEndpoint(project.id)
    const path = `/projects/${project.id}/endpoints/${resource.id}`

    const shown = await throughProxy.get(path)
    assert.deepEqual([shown.headers.get('content-encoding'), shown.headers.get('etag')], ['gzip', 'W/"1"'])

    const ifMatch = { 'if-match': shown.headers.get('etag') ?? '' }
    const reason = 'Replaced'
    assert.equal((await throughProxy.post(`${path}/rotate`, { reason }, ifMatch)).status, 200)
    assertProblem(await throughProxy.post(`${path}/rotate`, { reason }, ifMatch), 412, 'stale_resource')
  })
})
