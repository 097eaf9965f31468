import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { body } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { seedProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, grace } = session
const { project, planId } = await seedProject(session)
const path = `/admin/projects/${project.id}`
const home = `/console/projects/${project.id}`
const makeEndpoint = {
  ...{ name: 'Orders', url: `${session.receiver.url}/orders` },
  ...{ events: ['message.delivered'], is_active: true },
}
const { resource: endpoint } = await body<{ resource: { id: number } }>(
  201,
  admin.post(`${path}/endpoints`, makeEndpoint),
)

const limit = (rights: string) =>
  body(200, admin.patch(`/admin/users/${grace.id}`, { rights, reason: `Works in ${rights}` }))

/** Every page with actions. The paths are relative to /console/. */
const pages: [address: string, ready: (page: Page) => Promise<void>][] = [
  ['projects', (page) => page.getByRole('link', { name: 'Acme' }).waitFor()],
  [`projects/${project.id}`, (page) => page.getByRole('heading', { name: 'Queue' }).waitFor()],
  [`projects/${project.id}/sending`, (page) => page.getByRole('heading', { name: 'Queue' }).waitFor()],
  [`projects/${project.id}/domains`, (page) => page.getByText('No domains yet').waitFor()],
  [`projects/${project.id}/endpoints`, (page) => page.getByRole('link', { name: 'Orders' }).waitFor()],
  [
    `projects/${project.id}/endpoints/${endpoint.id}`,
    (page) => page.getByRole('heading', { name: 'Orders' }).waitFor(),
  ],
  [`projects/${project.id}/routing`, (page) => page.getByText('No routes yet').waitFor()],
  [`projects/${project.id}/members`, (page) => page.getByText(ada.email).waitFor()],
  [`projects/${project.id}/api-keys`, (page) => page.getByText('No API keys').waitFor()],
  ['policies', (page) => page.getByRole('link', { name: 'Bounce rate of 5 % or more' }).waitFor()],
  ['plans', (page) => page.getByText('Starter').waitFor()],
  ['users', (page) => page.getByText(grace.email).waitFor()],
]

/** The buttons of a page's content that start a change. Others search, filter, copy or explain. */
async function actionsOn(page: Page): Promise<string[]> {
  // The headings of a list sort it.
  const names = await page
    .getByRole('main')
    .getByRole('button')
    .and(page.locator(':not(th *)'))
    .allInnerTexts()
  const harmless =
    /^(Needs attention|Filters?|Copy.*|Check|Match|Find.*|Test|Look up|Why \d+\?|Next page|First page|Show .*|)$/
  return names.map((name) => name.trim()).filter((name) => !harmless.test(name))
}

let page: Page
const button = (name: string) => page.getByRole('main').getByRole('button', { name, exact: true })
const goHome = async () => {
  await page.goto(home)
  await page.getByRole('heading', { name: 'Acme', level: 1 }).waitFor()
  await page.getByRole('heading', { name: 'Queue' }).waitFor()
}

describe('an administrator with full rights', () => {
  it('limits the rights of a colleague', async () => {
    page = await session.browser.enter(ada)
    await page.goto('/console/users?role=admin')
    await page.getByRole('button', { name: grace.email }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('combobox', { name: 'Rights' }).click()
    await page.getByRole('option', { name: 'Support' }).click()
    await dialog.getByText('The user can read everything, and can restrict sending').waitFor()
    await dialog.getByRole('row', { name: /Rights full support/ }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'rights-edit')
    await confirm(page, 'Save changes', 'Works in support')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('row', { name: /grace@example\.com.*Administrator.*Support/ }).waitFor()
    await page.goto('/console/audit')
    await page
      .getByText(/^Ada gave .* support rights$/)
      .first()
      .waitFor()
    await checkScreens(session, 'rights-users', '/console/users?role=admin', (window) =>
      window.getByText(grace.email).waitFor(),
    )
  })
})

describe('support', () => {
  before(async () => {
    page = await session.browser.enter(grace)
  })

  it('sees its rights, and only the actions that they allow', async () => {
    await goHome()
    await page.getByRole('banner').getByText('Support').waitFor()
    await button('Hold').waitFor()
    assert.deepEqual(await actionsOn(page), ['Lock', 'More…', 'Add note', 'Hold'])
    await button('More… for this project').click()
    assert.deepEqual(await page.getByRole('menuitem').allInnerTexts(), ['Start an intervention'])
    await page.keyboard.press('Escape')
    assert.deepEqual(await findings(page), [])
    await checkScreens(
      session,
      'rights-support',
      home,
      (window) => window.getByRole('heading', { name: 'Queue' }).waitFor(),
      () => session.browser.enter(grace),
    )
    await page.goto(`/console/projects/${project.id}/endpoints/${endpoint.id}`)
    await page.getByRole('heading', { name: 'Orders' }).waitFor()
    for (const name of ['Send test event', 'Replay', 'Edit endpoint', 'More… for this endpoint']) {
      assert.equal(await button(name).count(), 0, name)
    }
  })

  it('locks a project and unlocks it', async () => {
    await goHome()
    await button('Lock').click()
    await dialogOf(page).getByText('Enter a reason.').waitFor()
    await confirm(page, 'Lock project', 'Phishing')
    await dialogOf(page).waitFor({ state: 'detached' })
    await audited(admin, project.id, 'projects.edit', 'Phishing')
    await page.getByRole('alert').filter({ hasText: 'by grace@example.com' }).waitFor()
    await button('Unlock').click()
    await confirm(page, 'Unlock project', 'Resolved')
    await dialogOf(page).waitFor({ state: 'detached' })
    await audited(admin, project.id, 'projects.edit', 'Resolved')
  })

  it('cannot change the plan', async () => {
    assert.equal(await button('Edit project').count(), 0)
    await page.goto('/console/plans')
    await page.getByText('Starter').waitFor()
    assert.deepEqual(await actionsOn(page), [])
  })
})

describe('billing', () => {
  before(() => limit('billing'))

  it('changes the plan, and nothing else', async () => {
    await goHome()
    await page.getByRole('banner').getByText('Billing').waitFor()
    assert.deepEqual(await actionsOn(page), ['Edit', 'More…'])
    await button('Edit project').click()
    const dialog = dialogOf(page)
    await dialog.getByRole('combobox', { name: 'Plan override' }).waitFor()
    for (const field of ['Name', 'Owner', 'Reputation score', 'Shared mail servers']) {
      assert.equal(await dialog.getByLabel(field, { exact: true }).count(), 0, field)
    }
    await dialog.getByRole('combobox', { name: 'Plan override' }).click()
    await page.getByRole('option', { name: 'Starter' }).click()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'rights-billing-edit')
    await confirm(page, 'Save changes', 'A gift')
    await dialog.waitFor({ state: 'detached' })
    await audited(admin, project.id, 'projects.edit', 'A gift')
    const { admin_plan_id } = await body<{ admin_plan_id: number }>(200, admin.get(path))
    assert.equal(admin_plan_id, planId)
  })
})

describe('an auditor', () => {
  it('whose rights were just limited is refused, and then sees no actions', async () => {
    await goHome()
    await button('Edit project').click()
    await dialogOf(page).getByRole('combobox', { name: 'Plan override' }).waitFor()
    await limit('auditor')
    await dialogOf(page).getByRole('combobox', { name: 'Subscription status override' }).click()
    await page.getByRole('option', { name: 'active' }).click()
    await dialogOf(page)
      .getByText(/requires full, support or billing rights\. You have auditor rights/)
      .waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'rights-refused')
    await page.keyboard.press('Escape')
    await button('Edit project').waitFor({ state: 'detached' })
  })

  it('reads everything and is offered no change', async () => {
    for (const [address, ready] of pages) {
      await page.goto(`/console/${address}`)
      await ready(page)
      assert.deepEqual(await actionsOn(page), [], address)
    }
    await page.goto('/console/policies/1')
    await page.getByText('Recorded firings').waitFor()
    assert.deepEqual(await actionsOn(page), ['More…'])
    await button('More… for this policy').click()
    assert.deepEqual(await page.getByRole('menuitem').allInnerTexts(), ['Audit'])
    await page.keyboard.press('Escape')
    await page.getByRole('menuitem').waitFor({ state: 'detached' })
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Jump to' }).fill('project')
    await page.getByRole('option', { name: 'Projects', exact: true }).waitFor()
    assert.equal(await page.getByRole('option', { name: 'New project' }).count(), 0)
    await page.keyboard.press('Escape')
    await checkScreens(
      session,
      'rights-auditor',
      home,
      (window) => window.getByRole('heading', { name: 'Queue' }).waitFor(),
      () => session.browser.enter(grace),
    )
  })
})
