import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { findings, signIn } from '../console/browser.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { openAppSession } from './app-session.ts'

const session = await openAppSession()
const { cleo, ada, project } = session

describe('the entrance of customers', () => {
  it('leads from / to the customer’s only project', async () => {
    const page = await session.browser.window()
    await page.goto('/')
    await signIn(page, cleo)
    await page.getByRole('heading', { name: project.name }).waitFor()
    assert.equal(new URL(page.url()).pathname, `/app/projects/${project.id}`)
    assert.deepEqual(await findings(page), [])
  })

  it('requests nothing of administrators, and loads at most 250 KB of compressed JavaScript', async (t) => {
    const page = await session.browser.enter(cleo)
    // The page that signing in leads to is the same one.
    await page.waitForLoadState('networkidle')
    const scripts: string[] = []
    const paths: string[] = []
    page.on('response', (response) => {
      paths.push(new URL(response.url()).pathname)
      if (/javascript/.test(response.headers()['content-type'] ?? '')) scripts.push(response.url())
    })
    await page.goto('/app/')
    await page.getByRole('heading', { name: project.name }).waitFor()
    await page.waitForLoadState('networkidle')
    const bodies = await Promise.all(scripts.map(async (script) => (await page.request.get(script)).body()))
    assert.deepEqual(
      paths.filter((path) => /^\/(v1\/admin|console)\b/.test(path)),
      [],
    )
    for (const body of bodies) assert.doesNotMatch(body.toString(), /\/v1\/admin\//)
    const packed = bodies.reduce((sum, body) => sum + gzipSync(body).length, 0)
    t.diagnostic(`${scripts.length} scripts, ${(packed / 1024).toFixed(1)} KB`)
    assert.ok(scripts.length > 0 && packed <= 250 * 1024, `${packed} bytes`)
  })

  it('is the place to which the console sends a customer', async () => {
    const page = await session.browser.enter(cleo)
    await page.goto('/console/projects?q=acme')
    const message = page.getByText('The console is only for administrators. These are your projects.')
    await message.waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await message.waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: project.name }).waitFor()
    assert.equal(new URL(page.url()).pathname, `/app/projects/${project.id}`)
  })

  it('shows administrators their own projects, and the way to the console', async () => {
    const page = await session.browser.enter(ada)
    await page.goto('/app/')
    await page.getByText('You are not a member of a project.').waitFor()
    await page.getByRole('button', { name: 'Ada' }).click()
    await page.getByRole('menuitem', { name: 'Administrators’ console' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Ada' }).click()
    await page.getByRole('menuitem', { name: 'My projects' }).click()
    await page.getByText('You are not a member of a project.').waitFor()
  })

  it('answers for another customer’s project as for one that does not exist', async () => {
    const other = await session.newCustomer('Bela')
    const page = await session.browser.enter(other)
    await page.goto(`/app/projects/${project.id}`)
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    await page.getByText(`There is no project ${project.id}.`).waitFor()
  })

  it('has a palette with pages, projects and commands', async () => {
    const page = await session.browser.enter(cleo)
    await page.goto('/app/projects')
    await page.getByRole('link', { name: project.name }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('acm')
    await page.getByRole('option', { name: project.name }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: project.name }).waitFor()
  })

  it('fits narrow and wide windows, in both schemes', async () => {
    await checkScreens(
      session,
      'app-projects',
      '/app/projects',
      (page) => page.getByRole('link', { name: project.name }).waitFor(),
      () => session.browser.enter(cleo),
    )
  })
})
