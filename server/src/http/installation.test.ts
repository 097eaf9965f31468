import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { startApi } from '../testing/harness/api.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { testDatabase } from '../testing/harness/database.ts'

const database = await testDatabase()
const folder = mkdtempSync(path.join(tmpdir(), 'postern-logo-'))
cleanUp(() => rm(folder, { recursive: true }))

const jsonOf = async (answer: Response): Promise<Record<string, unknown>> =>
  (await answer.json()) as Record<string, unknown>

function fileWith(name: string, content: string | Buffer): string {
  const file = path.join(folder, name)
  writeFileSync(file, content)
  return file
}

const drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

describe('installation.show', () => {
  test('returns the defaults of Postern, without credentials', async () => {
    const { url } = await startApi(database)
    const answer = await fetch(`${url}/v1/installation`)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=300')
    assert.deepEqual(await answer.json(), {
      name: 'Postern',
      logo_url: null,
      color: null,
      support_email: null,
      support_url: null,
      terms_url: null,
      privacy_url: null,
      sign_up: false,
      sign_in_issuers: [],
      customers_create_projects: false,
    })
    const logo = await fetch(`${url}/v1/installation/logo`)
    assert.deepEqual([logo.status, (await jsonOf(logo))['error']], [404, 'not_found'])
  })

  test('returns what the operator configured', async () => {
    const { url } = await startApi(database, {
      POSTERN_NAME: 'Acme Mail',
      POSTERN_COLOR: '#7A1F5C',
      POSTERN_LOGO_FILE: fileWith('logo.svg', drawing),
      POSTERN_SUPPORT_EMAIL: 'help@example.com',
      POSTERN_SUPPORT_URL: 'https://example.com/help',
      POSTERN_TERMS_URL: 'https://example.com/terms',
      POSTERN_PRIVACY_URL: 'https://example.com/privacy',
      POSTERN_CUSTOMER_PLAN_ID: '7',
    })
    const { logo_url, ...shown } = await jsonOf(await fetch(`${url}/v1/installation`))
    assert.match(String(logo_url), /^\/v1\/installation\/logo\?v=[0-9a-f]{16}$/)
    assert.deepEqual(shown, {
      name: 'Acme Mail',
      color: '#7a1f5c',
      support_email: 'help@example.com',
      support_url: 'https://example.com/help',
      terms_url: 'https://example.com/terms',
      privacy_url: 'https://example.com/privacy',
      sign_up: false,
      sign_in_issuers: [],
      customers_create_projects: true,
    })
    assert.equal((await fetch(`${url}${logo_url}`)).status, 200)
  })

  test('rejects unknown query parameters and other methods', async () => {
    const { url } = await startApi(database)
    for (const where of ['/v1/installation?v=1', '/v1/installation/logo?size=2']) {
      const answer = await fetch(`${url}${where}`)
      assert.deepEqual([answer.status, (await jsonOf(answer))['error']], [400, 'invalid_parameter'], where)
    }
    const posted = await fetch(`${url}/v1/installation`, { method: 'POST' })
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  })
})

describe('installation.show-logo', () => {
  test('serves an SVG that cannot run scripts or load anything', async () => {
    const { url } = await startApi(database, { POSTERN_LOGO_FILE: fileWith('drawing.svg', drawing) })
    const answer = await fetch(`${url}/v1/installation/logo`)
    assert.equal(await answer.text(), drawing)
    const policy = answer.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /sandbox/)
    assert.doesNotMatch(policy, /script-src|allow-scripts/)
    assert.deepEqual(
      ['content-type', 'x-content-type-options', 'cache-control'].map((name) => answer.headers.get(name)),
      ['image/svg+xml', 'nosniff', 'public, max-age=86400'],
    )
  })

  test('serves a PNG unchanged', async () => {
    const { url } = await startApi(database, { POSTERN_LOGO_FILE: fileWith('logo.png', png) })
    const answer = await fetch(`${url}/v1/installation/logo?v=old`)
    assert.equal(answer.headers.get('content-type'), 'image/png')
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(png))
  })
})
