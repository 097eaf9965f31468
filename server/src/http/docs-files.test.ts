import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { createRateLimit } from '../platform/http/rate-limit.ts'
import { createHttpServer } from '../platform/http/server.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { docsRoutes } from './docs-files.ts'

const script = "document.documentElement.classList.add('dark')"
const page = (title: string) => `<!doctype html><html><head><title>${title}</title>
<script id="check-dark-mode">${script}</script>
<script type="module" src="/docs/assets/app.Bq1.js"></script></head><body>${title}</body></html>`

const home = await mkdtemp(path.join(tmpdir(), 'postern-docs-'))
cleanUp(() => rm(home, { recursive: true }))
for (const folder of ['guide', 'decisions', 'assets'])
  await mkdir(path.join(home, 'docs', folder), { recursive: true })
await writeFile(path.join(home, 'secret.txt'), 'not for the world')
for (const [name, content] of Object.entries({
  'index.html': page('Start'),
  '404.html': page('Not found'),
  'guide/sending.html': page('Sending'),
  'decisions/index.html': page('Decisions'),
  'guide/sending.md': '# Sending\n',
  'llms.txt': '# Postern\n',
  'assets/app.Bq1.js': 'export {}\n',
}))
  await writeFile(path.join(home, 'docs', name), content)

async function serve(folder: string): Promise<string> {
  const app = createHttpServer({ log: createLogger('silent'), trustedProxies: [], isHttps: true })
  docsRoutes(app, { folder, addressLimit: createRateLimit(1_000_000, 'this address') })
  cleanUp(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}
const url = await serve(home)
const get = (target: string, headers: Record<string, string> = {}) =>
  fetch(`${url}${target}`, { headers, redirect: 'manual' })

describe('a page of the documentation', () => {
  test('is served with and without its extension, and for its folder', async () => {
    assert.equal((await get('/docs')).headers.get('location'), '/docs/')
    for (const [target, title] of [
      ['/docs/', 'Start'],
      ['/docs/guide/sending.html', 'Sending'],
      ['/docs/guide/sending', 'Sending'],
      ['/docs/decisions/', 'Decisions'],
      ['/docs/decisions', 'Decisions'],
    ] as const) {
      const response = await get(target)
      assert.equal(response.status, 200, target)
      assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
      assert.match(await response.text(), new RegExp(`<title>${title}</title>`))
    }
  })

  test('allows scripts only from this server, and inline scripts only by their hashes', async () => {
    const { headers } = await get('/docs/')
    const hash = createHash('sha256').update(script).digest('base64')
    const policy = headers.get('content-security-policy') ?? ''
    assert.ok(
      policy.startsWith(`default-src 'none'; script-src 'self' 'sha256-${hash}'; style-src 'self' 'sha256-`),
    )
    assert.ok(
      policy.endsWith(
        "; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      ),
    )
    assert.doesNotMatch(policy, /unsafe/)
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
  })

  test('that does not exist is the page “Not found”, with 404', async () => {
    const response = await get('/docs/guide/nothing')
    assert.equal(response.status, 404)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.match(await response.text(), /<title>Not found<\/title>/)
  })
})

describe('a file of the documentation', () => {
  test('is revalidated with its ETag, unless its name contains a hash', async () => {
    const first = await get('/docs/guide/sending.html')
    assert.equal(first.headers.get('cache-control'), 'no-cache')
    const etag = first.headers.get('etag') ?? assert.fail('no ETag')
    for (const header of [etag, etag.replace('W/', ''), `"other", ${etag}`, '*']) {
      const again = await get('/docs/guide/sending.html', { 'if-none-match': header })
      assert.deepEqual([again.status, await again.text()], [304, ''], header)
    }
    assert.equal((await get('/docs/', { 'if-none-match': etag })).status, 200)
    const asset = await get('/docs/assets/app.Bq1.js')
    assert.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.equal(asset.headers.get('content-security-policy')?.includes('sha256') ?? false, false)
  })

  test('has the content type of its extension', async () => {
    for (const [target, type] of [
      ['/docs/llms.txt', 'text/plain; charset=utf-8'],
      ['/docs/guide/sending.md', 'text/markdown; charset=utf-8'],
      ['/docs/assets/app.Bq1.js', 'text/javascript; charset=utf-8'],
    ] as const)
      assert.equal((await get(target)).headers.get('content-type'), type)
  })

  test('with a hash in its name that does not exist returns 404 instead of a page', async () => {
    const response = await get('/docs/assets/app.old.js')
    assert.equal(response.status, 404)
    assert.equal(JSON.parse(await response.text()).error, 'not_found')
  })

  test('cannot be outside the folder, however the path is encoded', async () => {
    for (const spelling of ['..%2fsecret.txt', '%2e%2e%2fsecret.txt', 'assets%2f..%2f..%2fsecret.txt', '%00'])
      assert.doesNotMatch(await (await get(`/docs/${spelling}`)).text(), /not for the world/, spelling)
  })
})

test('an API without the built documentation explains how to build it', async () => {
  const response = await fetch(`${await serve(path.join(home, 'nowhere'))}/docs/guide/sending`)
  assert.equal(response.status, 404)
  assert.match(JSON.parse(await response.text()).message, /`npm run build`/)
})
