import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'

const session = await openAdminSession()
const { admin } = session

/** Markup in a name. */
const hostile = `<img src=x onerror="document.title='owned'">`

const plan = await makePlan(admin)
const make = (name: string) =>
  body<{ id: number }>(
    201,
    admin.post('/admin/projects', { name, user_id: session.ada.id, plan_id: plan.id }),
  )
const acme = await make('Acme Shop')
await make('Acme Books')
await make('Birch Mill')
await make('Birch Books')
const evil = await make(`Evil ${hostile}`)
await body(200, admin.patch(`/admin/projects/${acme.id}`, { allow_service_mta: true, reason: 'Agreed' }))
const domain = await body<{ id: number }>(
  201,
  admin.post(`/admin/projects/${acme.id}/domains`, { name: 'acme.example', mta_provider: 'service' }),
)
await body(
  201,
  admin.post(`/admin/projects/${acme.id}/routing`, {
    ...{ domain_id: domain.id, match: 'address', address: 'orders@acme.example', action: 'drop' },
    ...{ endpoint_id: null, forward_to: null, is_active: true },
  }),
)

const page = await session.browser.enter(session.ada)
const palette = page.getByRole('dialog', { name: 'Jump to' })
const field = palette.getByRole('combobox', { name: 'Jump to' })
const option = (name: string | RegExp) => palette.getByRole('option', { name })
const open = async () => {
  await page.keyboard.press('Control+k')
  await field.and(page.locator(':focus')).waitFor()
}
const path = () => new URL(page.url()).pathname
/** The option that a screen reader announces as active. */
const active = () =>
  page.evaluate(
    "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.textContent",
  )

describe('the command palette', () => {
  it('opens from within a field, and closes with Escape and with its shortcut', async () => {
    await page.goto('/console/projects')
    await page.getByLabel('Search').fill('acm')
    await open()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'palette')
    await page.keyboard.press('Escape')
    await palette.waitFor({ state: 'hidden' })
    assert.equal(await page.getByLabel('Search').inputValue(), 'acm')
    await open()
    await page.keyboard.press('Control+k')
    await palette.waitFor({ state: 'hidden' })
  })

  it('keeps the keys pressed before it has loaded', async () => {
    const fresh = await session.browser.enter(session.ada)
    const { promise, resolve: letGo } = Promise.withResolvers<void>()
    await fresh.route(/\/assets\/palette-dialog-.*\.js/, async (route) => {
      await promise
      await route.continue()
    })
    await fresh.goto('/console/projects')
    await fresh.getByLabel('Search').fill('acm')
    await fresh.keyboard.press('Control+k')
    await fresh.keyboard.type('birxx', { delay: 20 })
    await fresh.keyboard.press('Backspace')
    await fresh.keyboard.press('Backspace')
    letGo()
    const combobox = fresh.getByRole('combobox', { name: 'Jump to' })
    await combobox.and(fresh.locator(':focus')).waitFor()
    await fresh.keyboard.type('ch mill')
    assert.equal(await combobox.inputValue(), 'birch mill')
    await fresh.getByRole('option', { name: 'Birch Mill' }).waitFor()
    await fresh.keyboard.press('Escape')
    assert.equal(await fresh.getByLabel('Search').inputValue(), 'acm')
    await fresh.context().close()
  })

  it('goes to pages, by arrow keys and Enter, and announces the active option', async () => {
    await open()
    assert.equal(await active(), 'Overview')
    await page.keyboard.press('ArrowDown')
    assert.equal(await active(), 'Projects')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    assert.equal(await active(), 'Sign out')
    await page.keyboard.type('plan')
    assert.equal(await active(), 'Plans')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Plans' }).waitFor()
    assert.equal(path(), '/console/plans')
  })

  it('jumps to a project, a domain, an address and a user', async () => {
    const jumps: [typed: string, choice: string, path: string][] = [
      ['acme s', 'Acme Shop', `/console/projects/${acme.id}`],
      ['acme.ex', 'acme.example', `/console/projects/${acme.id}/domains/${domain.id}`],
      ['orders@', 'orders@acme.example', `/console/projects/${acme.id}/routing`],
      ['grace', 'grace@example.com', '/console/users'],
      [String(acme.id), 'Acme Shop', `/console/projects/${acme.id}`],
    ]
    for (const [typed, choice, to] of jumps) {
      await open()
      await page.keyboard.type(typed)
      await option(choice).first().waitFor()
      while (!String(await active()).includes(choice)) await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.waitForURL((url) => url.pathname === to)
      await palette.waitFor({ state: 'hidden' })
    }
  })

  it('shows names as text, and a message when there are no results', async () => {
    await open()
    await page.keyboard.type('evil <img')
    await option(`Evil ${hostile}`).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'palette-found')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/projects/${evil.id}`)
    await page.getByRole('heading', { name: `Evil ${hostile}` }).waitFor()
    await staysText(page)
    await open()
    await page.keyboard.type('zzzzzz')
    await palette.getByText('No results.').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.keyboard.press('Escape')
  })

  it('shows the results of the last search, whichever results arrive first', async () => {
    const { promise, resolve: letGo } = Promise.withResolvers<void>()
    await page.route(/\/v1\/admin\/search\?q=birch$/, async (route) => {
      await promise
      // The request may have been aborted.
      await route.continue().catch(() => undefined)
    })
    await open()
    const asked = page.waitForRequest(/\/search\?q=birch$/)
    await page.keyboard.type('birch')
    await asked
    await page.keyboard.type(' books')
    await option('Birch Books').waitFor()
    letGo()
    await page.unrouteAll({ behavior: 'wait' })
    assert.equal(await option('Birch Mill').count(), 0)
    assert.match(String(await active()), /^Birch Books/)
    await page.keyboard.press('Escape')
  })

  it('keeps the typed text when a page with a search field loads late', async () => {
    await page.goto('/console/plans')
    await page.getByRole('heading', { name: 'Plans' }).waitFor()
    const { promise, resolve: letGo } = Promise.withResolvers<void>()
    await page.route(/\/assets\/users-page-/, async (route) => {
      await promise
      await route.continue()
    })
    await open()
    await page.keyboard.type('users')
    await page.keyboard.press('Enter')
    await palette.waitFor({ state: 'hidden' })
    await open()
    await page.keyboard.type('bir')
    letGo()
    await page.getByRole('heading', { name: 'Users', includeHidden: true }).waitFor()
    await page.keyboard.type('ch mill')
    await option('Birch Mill').waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.keyboard.press('Escape')
  })

  it('goes to the tabs of the open project, and locks it', async () => {
    await page.goto(`/console/projects/${acme.id}`)
    await page.getByRole('heading', { name: 'Acme Shop' }).waitFor()
    await open()
    await page.keyboard.type('members')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/projects/${acme.id}/members`)
    await open()
    await page.keyboard.type('lock')
    await option('Lock this project').waitFor()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Lock Acme Shop' })
    await dialog.getByText('Enter a reason.').waitFor()
    // The reason field has the focus; the palette does not open over a dialog.
    await page.keyboard.press('Control+k')
    await page.keyboard.type('Card testing')
    await dialog.getByRole('button', { name: 'Lock project', disabled: false }).waitFor()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    const { is_locked } = await body<{ is_locked: boolean }>(200, admin.get(`/admin/projects/${acme.id}`))
    assert.equal(is_locked, true)
    const { data } = await body<{ data: { reason: string }[] }>(
      200,
      admin.get(`/admin/audit?project_id=${acme.id}`),
    )
    assert.equal(data[0]?.reason, 'Card testing')
    await open()
    await option('Unlock this project').waitFor()
    await page.keyboard.press('Escape')
  })

  it('starts a new project, and switches to the dark theme', async () => {
    await open()
    await page.keyboard.type('new pro')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'New project' }).getByLabel('Name').fill('Cedar')
    await page.keyboard.press('Escape')
    await open()
    await page.keyboard.type('dark')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate('document.documentElement.dataset.mantineColorScheme'), 'dark')
    await open()
    await page.keyboard.type('acme')
    await option('Acme Books').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'palette-dark')
    await page.keyboard.press('Escape')
  })

  it('fits a narrow window, where it is opened by a button', async () => {
    const narrow = await session.browser.enter(session.ada, { width: 390 })
    await narrow.goto('/console/projects')
    await narrow.getByRole('button', { name: /^Jump to/ }).click()
    await narrow.getByRole('option', { name: 'Plans' }).waitFor()
    assert.deepEqual(await findings(narrow), [])
    await picture(narrow, 'palette-390')
    await narrow.getByRole('option', { name: 'Plans' }).click()
    await narrow.getByRole('heading', { name: 'Plans' }).waitFor()
  })

  it('signs out', async () => {
    await open()
    await page.keyboard.type('sign out')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})
