import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openDesk } from './admin-session.ts'
import { findings, picture, signIn } from './browser.ts'

const desk = await openDesk()

describe('signing in', () => {
  it('takes a password and a code, and keeps no token in the browser’s storage', async () => {
    const page = await desk.browser.window()
    await page.goto('/console/')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'sign-in')
    await signIn(page, desk.grace)
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
    await picture(page, 'projects-empty')
    assert.equal(new URL(page.url()).pathname, '/console/projects')
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
    assert.doesNotMatch(String(kept), /eyJ|token/)
    assert.deepEqual(await findings(page), [])
  })

  it('and the first page take no more than 250 KB of JavaScript, packed', async (t) => {
    const page = await desk.browser.enter(desk.ada)
    const scripts: Promise<Buffer>[] = []
    page.on('response', (response) => {
      if (/javascript/.test(response.headers()['content-type'] ?? '')) scripts.push(response.body())
    })
    await page.goto('/console/projects')
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
    await page.waitForLoadState('networkidle')
    const packed = (await Promise.all(scripts)).reduce((sum, body) => sum + gzipSync(body).length, 0)
    t.diagnostic(`${scripts.length} scripts, ${(packed / 1024).toFixed(1)} KB`)
    assert.ok(scripts.length > 0 && packed <= 250 * 1024, `${packed} bytes`)
  })

  it('is refused to who has no second factor of theirs to show', async () => {
    const page = await desk.browser.window()
    await page.goto('/console/audit?actor=1')
    await page.getByLabel('Email').fill(desk.grace.email)
    await page.getByRole('textbox', { name: 'Password' }).fill('not the password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: 'Password' }).fill(desk.grace.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('Code of your authenticator').fill('000000')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByRole('alert').waitFor()
    // Only a digit was wrong: the password need not be given again.
    assert.equal(await page.getByLabel('Code of your authenticator').inputValue(), '')
    assert.deepEqual(await findings(page), [])
    assert.equal(await page.getByRole('navigation').count(), 0)
    assert.match(page.url(), /\/console\/audit\?actor=1$/)
  })
})
