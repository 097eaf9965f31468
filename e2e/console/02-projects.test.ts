import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, signIn } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject, seedProject } from './seed.ts'

const session = await openAdminSession()
const { admin, ada, grace } = session
const { project, planId } = await seedProject(session)
const other = await makePlan(admin, { name: 'Business' })
for (const name of ['Bakery', 'Bookshop', 'Bicycles']) await makeProject(admin, ada.id, planId, name)

const page = await session.browser.enter(ada)
const hers = await session.browser.enter(grace)
const show = () => body<Record<string, unknown>>(200, admin.get(`/admin/projects/${project.id}`))
const openProject = async (where: Page) => {
  await where.goto(`/console/projects/${project.id}`)
  await where.getByRole('heading', { name: 'Acme' }).waitFor()
}

describe('the list of projects', () => {
  it('searches while typing, and keeps the search in the address bar', async () => {
    await page.goto('/console/projects')
    await page.getByRole('link', { name: 'Bookshop' }).waitFor()
    await page.getByRole('textbox', { name: 'Search' }).pressSequentially('bi')
    await page.getByRole('link', { name: 'Bookshop' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Bicycles' }).waitFor()
    assert.match(page.url(), /\/console\/projects\?q=bi$/)
    await page.reload()
    await page.getByRole('link', { name: 'Bicycles' }).waitFor()
    assert.equal(await page.getByRole('row').count(), 2)
  })

  it('shows a message when nothing matches, and ignores invalid values in the address bar', async () => {
    await page.goto('/console/projects?q=nothing-like-it&sort=sideways&max_score=-4&locked=perhaps')
    await page.getByText('No matching projects').waitFor()
  })

  it('combines filters and order', async () => {
    await page.goto('/console/projects')
    await page.getByRole('combobox', { name: 'Plan', exact: true }).click()
    await page.getByRole('option', { name: 'Business' }).click()
    await page.getByText('No matching projects').waitFor()
    assert.match(page.url(), new RegExp(`plan_id=${other.id}`))
    await page.goto('/console/projects?locked=false&sort=name')
    await page.getByRole('link', { name: 'Acme' }).waitFor()
    const names = await page.getByRole('row').getByRole('link').allTextContents()
    assert.deepEqual(names, ['Acme', 'Bakery', 'Bicycles', 'Bookshop'])
  })

  it('is navigated by keyboard, and continues at the row that was opened', async () => {
    const row = (name: string) => page.getByRole('link', { name }).and(page.locator(':focus'))
    await page.keyboard.press('j')
    await row('Acme').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Bakery' }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Bicycles' }).waitFor()
    await page.keyboard.press('j')
    await row('Bakery').waitFor()
    await page.keyboard.press('j')
    await row('Bicycles').waitFor()
  })
})

describe('a project', () => {
  it('is created', async () => {
    await page.goto('/console/projects')
    await page.getByRole('button', { name: 'New project' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Name' }).fill('Florist')
    await dialogOf(page).getByRole('combobox', { name: 'Owner' }).fill('grace')
    await page.getByRole('option', { name: /grace@example.com/ }).click()
    await dialogOf(page).getByRole('combobox', { name: 'Plan', exact: true }).click()
    await page.getByRole('option', { name: 'Starter' }).click()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-create')
    await confirm(page, 'Create project', 'Signed by post')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'Florist' }).waitFor()
    const made = Number(new URL(page.url()).pathname.split('/').at(-1))
    await audited(admin, made, 'projects.create', 'Signed by post')
  })

  it('is locked with a preview and a reason, shows who locked it, and is unlocked again', async () => {
    await openProject(page)
    await page.getByRole('button', { name: 'Lock' }).click()
    const act = dialogOf(page).getByRole('button', { name: 'Lock project' })
    await dialogOf(page).getByText('Locked', { exact: true }).waitFor()
    await dialogOf(page).getByText('Enter a reason.').waitFor()
    assert.equal(await act.isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-lock')
    await confirm(page, 'Lock project', 'Card testing')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('This project is locked').waitFor()
    assert.equal((await show())['is_locked'], true)
    await audited(admin, project.id, 'projects.edit', 'Card testing')
    await page
      .getByRole('alert')
      .getByText(/^Since .*, by ada@example\.com, without expiry\. Reason: Card testing$/)
      .waitFor()

    await page.getByRole('button', { name: 'Unlock' }).click()
    // The preview appears above the reasons and moves them. A click while it does so can miss.
    await dialogOf(page).getByRole('rowheader', { name: 'Locked' }).waitFor()
    await dialogOf(page).getByRole('button', { name: 'Card testing' }).click()
    assert.equal(await dialogOf(page).getByRole('textbox', { name: 'Reason' }).inputValue(), 'Card testing')
    await confirm(page, 'Unlock project', 'It was not them')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('This project is locked').waitFor({ state: 'detached' })
  })

  it('is edited: only edited fields are sent', async () => {
    await page.getByRole('button', { name: 'Edit project' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Reputation score' }).fill('40')
    await dialogOf(page).getByRole('combobox', { name: 'Plan override' }).click()
    await page.getByRole('option', { name: 'Business' }).click()
    await dialogOf(page).getByRole('rowheader', { name: 'Plan override' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-edit')
    await confirm(page, 'Save changes', 'On trial for a month')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('override').waitFor()
    const { reputation_score, admin_plan_id, name } = await show()
    assert.deepEqual([reputation_score, admin_plan_id, name], [40, other.id, 'Acme'])
  })

  it('has its billing set', async () => {
    await page.getByRole('button', { name: 'More… for this project' }).click()
    await page.getByRole('menuitem', { name: 'Set billing' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Subscription', exact: true }).fill('sub_4711')
    await dialogOf(page).getByRole('combobox', { name: 'Subscription status' }).click()
    await page.getByRole('option', { name: 'past due' }).click()
    await confirm(page, 'Set billing', 'Repaired by hand')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('sub_4711').waitFor()
    assert.equal((await show())['billing_subscription_status'], 'past_due')
  })

  it('has its queue held and released', async () => {
    await page.getByRole('button', { name: 'Hold', exact: true }).click()
    await confirm(page, 'Hold mail', 'Looking at a complaint')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Release', exact: true }).click()
    await confirm(page, 'Release mail', 'All is well')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Hold', exact: true }).waitFor()
    await audited(admin, project.id, 'queue.release', 'All is well')
  })
})

describe('an unknown URL', () => {
  it('shows a "not found" page with a link back', async () => {
    await page.goto('/console/projects/999999')
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    await page.getByRole('link', { name: 'Go to the home page' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.goto('/console/nowhere')
    await page.getByRole('heading', { name: 'Page not found' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('link', { name: 'Go to the home page' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  })
})

describe('without a connection', () => {
  it('a page reports that the server is unreachable, and loads when the connection is back', async () => {
    await page.goto('/console/plans')
    await page.getByRole('button', { name: 'Business' }).waitFor()
    await page.route('**/v1/**', (route) => route.abort())
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
    await page.unroute('**/v1/**')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('button', { name: ada.email }).waitFor()
  })
})

describe('two administrators who edit one project', () => {
  it('the second sees the first one’s changes, and can continue editing', async () => {
    await openProject(page)
    await page.getByRole('button', { name: 'Edit project' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Reputation score' }).fill('55')
    await dialogOf(page).getByRole('rowheader', { name: 'Reputation score' }).waitFor()
    await body(200, admin.patch(`/admin/projects/${project.id}`, { name: 'Acme and Sons' }))
    await dialogOf(page).getByRole('textbox', { name: 'Reason' }).fill('Better than I thought')
    await dialogOf(page).getByRole('button', { name: 'Save changes' }).click()
    await dialogOf(page).getByText('This was changed after you opened it').waitFor()
    await dialogOf(page).getByText('Acme and Sons').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-conflict')
    assert.equal((await show())['reputation_score'], 40)
    await dialogOf(page).getByRole('button', { name: 'Continue with my edits' }).click()
    assert.equal(await dialogOf(page).getByRole('textbox', { name: 'Name' }).inputValue(), 'Acme and Sons')
    assert.equal(await dialogOf(page).getByRole('textbox', { name: 'Reputation score' }).inputValue(), '55')
    await dialogOf(page).getByRole('button', { name: 'Save changes' }).click()
    await dialogOf(page).waitFor({ state: 'detached' })
    const { name, reputation_score } = await show()
    assert.deepEqual([name, reputation_score], ['Acme and Sons', 55])
    await body(200, admin.patch(`/admin/projects/${project.id}`, { name: 'Acme' }))
  })
})

describe('a session that is revoked during a change', () => {
  it('is renewed by signing in over the form, which keeps its input', async () => {
    await openProject(hers)
    await hers.getByRole('button', { name: 'Lock' }).click()
    await dialogOf(hers).getByRole('textbox', { name: 'Reason' }).fill('Typed with care')
    // Otherwise the preview could be the request that is rejected.
    await dialogOf(hers).getByRole('button', { name: 'Lock project', disabled: false }).waitFor()
    await body(200, admin.patch(`/admin/users/${grace.id}`, { end_sessions: true, reason: 'For the test' }))
    await dialogOf(hers).getByRole('button', { name: 'Lock project' }).click()
    await hers.getByText('Your session has ended').waitFor()
    await picture(hers, 'session-ended')
    assert.deepEqual(await findings(hers), [])
    await hers.keyboard.press('Escape')
    await signIn(hers, grace, 30_000)
    // The change is not submitted automatically after sign-in.
    await dialogOf(hers).getByText('Review the change and submit it again.').waitFor()
    assert.equal((await show())['is_locked'], false)
    await dialogOf(hers).getByRole('button', { name: 'Lock project' }).click()
    await hers.getByText('This project is locked').waitFor()
    await audited(admin, project.id, 'projects.edit', 'Typed with care')
  })

  it('reloads the page when another user has signed in from another tab', async () => {
    const mine = await session.browser.enter(ada)
    await openProject(mine)
    await mine.getByRole('button', { name: 'Unlock' }).click()
    await dialogOf(mine).getByRole('textbox', { name: 'Reason' }).fill('Begun by Ada')
    await dialogOf(mine).getByText('Locked', { exact: true }).waitFor()
    // Sets Grace's cookie in Ada's browser, as if Grace had signed in from another tab after Ada's session had ended.
    await mine.context().clearCookies()
    await mine.context().addCookies(await hers.context().cookies())
    const hersCaller = new Caller(
      session.url,
      (await session.postern('token', '--email', grace.email)).trim(),
    )
    await body(200, admin.patch(`/admin/users/${ada.id}`, { end_sessions: true, reason: 'For the test' }))
    await Promise.all([
      mine.waitForEvent('load'),
      dialogOf(mine).getByRole('button', { name: 'Unlock project' }).click(),
    ])
    await mine.getByRole('button', { name: 'Grace' }).waitFor()
    await dialogOf(mine).waitFor({ state: 'detached' })
    const { data } = await body<{ data: { reason: string | null }[] }>(
      200,
      hersCaller.get('/admin/audit?limit=5'),
    )
    assert.ok(data.every(({ reason }) => reason !== 'Begun by Ada'))
  })
})
