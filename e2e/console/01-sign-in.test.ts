import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, signIn } from './browser.ts'

const session = await openAdminSession()

describe('signing in', () => {
  it('requires a password and a code, and keeps no token in the browser’s storage', async () => {
    const page = await session.browser.window()
    await page.goto('/console/')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'sign-in')
    await signIn(page, session.grace)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await picture(page, 'overview-empty')
    assert.equal(new URL(page.url()).pathname, '/console/')
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
    assert.doesNotMatch(String(kept), /eyJ|token/)
    assert.deepEqual(await findings(page), [])
  })

  it('leads to a first page that loads at most 250 KB of compressed JavaScript', async (t) => {
    const page = await session.browser.enter(session.ada)
    // The page that signing in leads to is the same one.
    await page.waitForLoadState('networkidle')
    const scripts: string[] = []
    page.on('response', (response) => {
      if (/javascript/.test(response.headers()['content-type'] ?? '')) scripts.push(response.url())
    })
    await page.goto('/console/')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.waitForLoadState('networkidle')
    // Fetched again: the browser discards the body of a response when it leaves the page.
    const bodies = await Promise.all(scripts.map(async (script) => (await page.request.get(script)).body()))
    const packed = bodies.reduce((sum, body) => sum + gzipSync(body).length, 0)
    t.diagnostic(`${scripts.length} scripts, ${(packed / 1024).toFixed(1)} KB`)
    assert.ok(scripts.length > 0 && packed <= 250 * 1024, `${packed} bytes`)
  })

  it('is rejected with a wrong password or a wrong code', async () => {
    const page = await session.browser.window()
    await page.goto('/console/audit?actor=1')
    await page.getByLabel('Email').fill(session.grace.email)
    await page.getByRole('textbox', { name: 'Password' }).fill('not the password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: 'Password' }).fill(session.grace.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('Authentication code').fill('000000')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByRole('alert').waitFor()
    // After a wrong code, the password is still accepted.
    assert.equal(await page.getByLabel('Authentication code').inputValue(), '')
    assert.deepEqual(await findings(page), [])
    assert.equal(await page.getByRole('navigation').count(), 0)
    assert.match(page.url(), /\/console\/audit\?actor=1$/)
  })

  it('leads a customer to their own projects, and says why', async () => {
    const [email, password] = ['cleo@example.net', 'a long enough password']
    await session.database.query(`insert into control.users (email, name) values ($1, 'Cleo')`, [email])
    const printed = await session.postern('users', 'reset-password', '--email', email, '--reason', 'New')
    const page = await session.browser.window()
    await page.goto(/\/app\/reset-password#\S+/.exec(printed)?.[0] ?? '')
    await page.getByRole('textbox', { name: 'New password' }).fill(password)
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.goto('/console/projects')
    await signIn(page, { id: 0, email, password })
    await page.getByText('The console is only for administrators. These are your projects.').waitFor()
    await page.waitForURL(({ pathname }) => pathname === '/app/projects')
    await page.getByText('You are not a member of a project.').waitFor()
    assert.deepEqual(await findings(page), [])
  })
})
