import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { createRateLimit } from '../platform/http/rate-limit.ts'
import { createHttpServer } from '../platform/http/server.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { webRoutes } from './web-files.ts'

const page = `<!doctype html>
<meta property="csp-nonce" nonce="__CSP_NONCE__">
<script type="module" src="/console/assets/index-BqzGp0a1.js" nonce="__CSP_NONCE__"></script>
<link rel="stylesheet" href="/console/assets/index-C2x.css" nonce="__CSP_NONCE__">
`
const script = `export const words = '${'Postern '.repeat(500)}'\n`
const font = Buffer.from('wOF2 and what follows')

const home = await mkdtemp(path.join(tmpdir(), 'postern-web-'))
cleanUp(() => rm(home, { recursive: true }))
const folder = path.join(home, 'console')
const appFolder = path.join(home, 'app')
await mkdir(path.join(folder, 'assets'), { recursive: true })
await mkdir(path.join(appFolder, 'assets'), { recursive: true })
await writeFile(path.join(home, 'secret.txt'), 'not for the world')
await writeFile(path.join(folder, 'index.html'), page)
await writeFile(path.join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
await writeFile(path.join(folder, 'assets/index-BqzGp0a1.js'), script)
await writeFile(path.join(folder, 'assets/index-C2x.css'), 'body { margin: 0 }')
await writeFile(path.join(folder, 'assets/inter-D3y.woff2'), font)
await writeFile(path.join(appFolder, 'index.html'), page.replaceAll('/console/', '/app/'))
await writeFile(path.join(appFolder, 'assets/index-App.js'), 'export const app = true\n')

async function serve(from: string, perMinute = 1_000_000): Promise<string> {
  const app = createHttpServer({ log: createLogger('silent'), trustedProxies: [], isHttps: true })
  webRoutes(app, { folder: from, addressLimit: createRateLimit(perMinute, 'this address') })
  cleanUp(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}
const url = await serve(home)

interface Answer {
  status: number
  headers: Record<string, string | undefined>
  body: Buffer
  text: string
}

/** Requests the exact path and returns the raw body. fetch would normalize the path and decompress the body. */
function ask(target: string, { method = 'GET', encoding = '', at = url } = {}): Promise<Answer> {
  const { hostname, port } = new URL(at)
  return new Promise((resolve, reject) => {
    const headers = encoding === '' ? {} : { 'accept-encoding': encoding }
    const sent = request({ hostname, port, method, path: target, headers }, async (response) => {
      const body = Buffer.concat(await response.toArray())
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers as Answer['headers'],
        body,
        text: body.toString(),
      })
    })
    sent.on('error', reject).end()
  })
}

const nonceOf = ({ headers }: Answer): string =>
  /'nonce-([^']+)'/.exec(headers['content-security-policy'] ?? '')?.[1] ?? assert.fail('no nonce')

describe('the console page', () => {
  test('is the target of /console, and the app is the target of / and /app', async () => {
    for (const [from, to] of [
      ['/console', '/console/'],
      ['/app', '/app/'],
      ['/', '/app/'],
    ] as const) {
      const { status, headers } = await ask(from)
      assert.deepEqual([status, headers['location']], [302, to], from)
    }
  })

  test('is served at every console path, and never cached', async () => {
    for (const address of [
      '/console/',
      '/console/index.html',
      '/console/projects/7?tab=audit',
      '/console/a.b',
    ]) {
      const answer = await ask(address)
      assert.equal(answer.status, 200, address)
      assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
      assert.equal(answer.headers['cache-control'], 'no-store')
      assert.equal(answer.text, page.replaceAll('__CSP_NONCE__', nonceOf(answer)), address)
    }
  })

  test('has a unique nonce of 128 bits in every response', async () => {
    const nonces = await Promise.all(Array.from({ length: 20 }, async () => nonceOf(await ask('/console/'))))
    assert.equal(new Set(nonces).size, nonces.length)
    for (const nonce of nonces) assert.equal(Buffer.from(nonce, 'base64url').length, 16)
  })

  test('allows only scripts from this server, and no inline scripts', async () => {
    const answer = await ask('/console/')
    assert.equal(
      answer.headers['content-security-policy'],
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonceOf(answer)}'; img-src 'self'; ` +
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
  })

  test('has security headers', async () => {
    for (const address of ['/console/', '/console/assets/index-C2x.css']) {
      const { headers } = await ask(address)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
      assert.equal(headers['strict-transport-security'], 'max-age=31536000')
      assert.match(headers['permissions-policy'] ?? '', /(^|, )camera=\(\)/)
    }
  })
})

describe('a console file', () => {
  const asset = '/console/assets/index-BqzGp0a1.js'

  test('is cached for a year if its name contains a hash, otherwise for an hour', async () => {
    const kept = async (address: string) => (await ask(address)).headers['cache-control']
    assert.equal(await kept(asset), 'public, max-age=31536000, immutable')
    assert.equal(await kept('/console/icon.svg'), 'public, max-age=3600')
  })

  test('has the content type of its extension', async () => {
    const typeOf = async (address: string) => (await ask(address)).headers['content-type']
    assert.equal(await typeOf(asset), 'text/javascript; charset=utf-8')
    assert.equal(await typeOf('/console/assets/index-C2x.css'), 'text/css; charset=utf-8')
    assert.equal(await typeOf('/console/icon.svg'), 'image/svg+xml')
    assert.equal(await typeOf('/console/assets/inter-D3y.woff2'), 'font/woff2')
  })

  test('is compressed with the best encoding that the client accepts', async () => {
    const cases = [
      ['', undefined],
      ['identity', undefined],
      ['gzip', 'gzip'],
      ['gzip, deflate, br, zstd', 'br'],
      ['br;q=0, gzip;q=0.5', 'gzip'],
      ['GZIP;q=1.0', 'gzip'],
      ['gzip;q=0.000, br;q=0', undefined],
      ['x-brand, gzipped', undefined],
    ] as const
    const unpack = { gzip: gunzipSync, br: brotliDecompressSync, undefined: (bytes: Buffer) => bytes }
    for (const [encoding, expected] of cases) {
      const { status, headers, body } = await ask(asset, { encoding })
      assert.deepEqual([status, headers['content-encoding']], [200, expected], encoding)
      assert.equal(headers['vary'], 'accept-encoding')
      assert.equal(unpack[`${expected}`](body).toString(), script, encoding)
      assert.ok(expected === undefined || body.length < script.length / 10, encoding)
    }
  })

  test('is not compressed if that would not make it smaller', async () => {
    const { headers, body } = await ask('/console/assets/inter-D3y.woff2', { encoding: 'gzip, br' })
    assert.equal(headers['content-encoding'], undefined)
    assert.deepEqual(body, font)
  })

  test('that does not exist returns 404 instead of the console page', async () => {
    const { status, headers, text } = await ask('/console/assets/index-old.js')
    assert.equal(status, 404)
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(JSON.parse(text).error, 'not_found')
  })

  test('cannot be outside the console directory, however the path is encoded', async () => {
    const spellings = [
      '../secret.txt',
      '..%2fsecret.txt',
      '%2e%2e/secret.txt',
      'assets/../../secret.txt',
      '%00',
    ]
    for (const spelling of [
      ...spellings,
      `/${path.join(home, 'secret.txt')}`,
      'assets%2f..%2f..%2fsecret.txt',
    ]) {
      const { text } = await ask(`/console/${spelling}`)
      assert.doesNotMatch(text, /not for the world/, spelling)
    }
  })
})

test('each entrance serves its own page and files, and none of the other', async () => {
  const answer = await ask('/app/projects/7')
  assert.match(answer.text, /src="\/app\/assets\/index-/)
  assert.doesNotMatch(answer.text, /\/console\//)
  assert.equal((await ask('/app/assets/index-App.js')).status, 200)
  assert.equal((await ask('/app/assets/index-BqzGp0a1.js')).status, 404)
  assert.equal((await ask('/console/assets/index-App.js')).status, 404)
})

test('HEAD returns the headers of GET without the body', async () => {
  for (const [address, length] of [
    ['/console/assets/index-BqzGp0a1.js', script.length],
    ['/console/', (await ask('/console/')).body.length],
  ] as const) {
    const { status, headers, body } = await ask(address, { method: 'HEAD' })
    assert.deepEqual([status, headers['content-length'], body.length], [200, `${length}`, 0], address)
  }
})

test('an API without built pages explains how to build it', async () => {
  const at = await serve(path.join(home, 'nowhere'))
  const { status, text } = await ask('/console/projects', { at })
  assert.equal(status, 404)
  assert.match(JSON.parse(text).message, /`npm run build`/)
})

test('requests for files are limited per minute per address', async () => {
  const at = await serve(home, 3)
  const statuses: number[] = []
  for (let nth = 0; nth < 4; nth++) statuses.push((await ask('/console/', { at })).status)
  assert.deepEqual(statuses, [200, 200, 200, 429])
})
