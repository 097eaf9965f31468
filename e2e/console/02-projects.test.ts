import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import { openDesk } from './admin-session.ts'
import { findings, picture, signIn } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { furnish, makeProject } from './seed.ts'

const desk = await openDesk()
const { admin, ada, grace } = desk
const { project, planId } = await furnish(desk)
const other = await makePlan(admin, { name: 'Business' })
for (const name of ['Bakery', 'Bookshop', 'Bicycles']) await makeProject(admin, ada.id, planId, name)

const page = await desk.browser.enter(ada)
const hers = await desk.browser.enter(grace)
const show = () => body<Record<string, unknown>>(200, admin.get(`/admin/projects/${project.id}`))
const openProject = async (where: Page) => {
  await where.goto(`/console/projects/${project.id}`)
  await where.getByRole('heading', { name: 'Acme' }).waitFor()
}

describe('the list of projects', () => {
  it('finds as one types, and keeps the question in the address', async () => {
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

  it('says so where nothing fits, and survives nonsense in the address', async () => {
    await page.goto('/console/projects?q=nothing-like-it&sort=sideways&max_score=-4&locked=perhaps')
    await page.getByText('No project fits').waitFor()
  })

  it('is narrowed and ordered by what can be chosen, together', async () => {
    await page.goto('/console/projects')
    await page.getByRole('combobox', { name: 'Plan in force' }).click()
    await page.getByRole('option', { name: 'Business' }).click()
    await page.getByText('No project fits').waitFor()
    assert.match(page.url(), new RegExp(`plan_id=${other.id}`))
    await page.goto('/console/projects?locked=false&sort=name')
    await page.getByRole('link', { name: 'Acme' }).waitFor()
    const names = await page.getByRole('row').getByRole('link').allTextContents()
    assert.deepEqual(names, ['Acme', 'Bakery', 'Bicycles', 'Bookshop'])
  })

  it('is moved along by keys', async () => {
    await page.getByRole('link', { name: 'Acme' }).focus()
    await page.keyboard.press('j')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Bakery' }).waitFor()
  })
})

describe('a project', () => {
  it('is made', async () => {
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

  it('is locked only with a reason, after it was said what follows, and unlocked again', async () => {
    await openProject(page)
    await page.getByRole('button', { name: 'Lock' }).click()
    const act = dialogOf(page).getByRole('button', { name: 'Lock project' })
    await dialogOf(page).getByText('is_locked').waitFor()
    await dialogOf(page).getByText('A reason is needed.').waitFor()
    assert.equal(await act.isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-lock')
    await confirm(page, 'Lock project', 'Card testing')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('This project is locked').waitFor()
    assert.equal((await show())['is_locked'], true)
    await audited(admin, project.id, 'projects.edit', 'Card testing')

    await page.getByRole('button', { name: 'Unlock' }).click()
    await dialogOf(page).getByRole('button', { name: 'Card testing' }).click()
    assert.equal(await dialogOf(page).getByRole('textbox', { name: 'Reason' }).inputValue(), 'Card testing')
    await confirm(page, 'Unlock project', 'It was not them')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('This project is locked').waitFor({ state: 'detached' })
  })

  it('is edited: only what was touched is sent', async () => {
    await page.getByRole('button', { name: 'Change…' }).click()
    await page.getByRole('menuitem', { name: 'Edit project' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Reputation score' }).fill('40')
    await dialogOf(page).getByRole('combobox', { name: 'Plan in force instead' }).click()
    await page.getByRole('option', { name: 'Business' }).click()
    await dialogOf(page).getByText('admin_plan_id').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-edit')
    await confirm(page, 'Save changes', 'On trial for a month')
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByText('override').waitFor()
    const { reputation_score, admin_plan_id, name } = await show()
    assert.deepEqual([reputation_score, admin_plan_id, name], [40, other.id, 'Acme'])
  })

  it('has its billing set', async () => {
    await page.getByRole('button', { name: 'Change…' }).click()
    await page.getByRole('menuitem', { name: 'Set billing' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Subscription', exact: true }).fill('sub_4711')
    await dialogOf(page).getByRole('combobox', { name: 'Subscription status' }).click()
    await page.getByRole('option', { name: 'past due' }).click()
    await confirm(page, 'Save billing', 'Repaired by hand')
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

describe('two administrators at one project', () => {
  it('who comes second is shown what changed meanwhile, and goes on with what they wrote', async () => {
    await openProject(page)
    await page.getByRole('button', { name: 'Change…' }).click()
    await page.getByRole('menuitem', { name: 'Edit project' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Reputation score' }).fill('55')
    await dialogOf(page).getByText('reputation_score').waitFor()
    await body(200, admin.patch(`/admin/projects/${project.id}`, { name: 'Acme and Sons' }))
    await dialogOf(page).getByRole('textbox', { name: 'Reason' }).fill('Better than I thought')
    await dialogOf(page).getByRole('button', { name: 'Save changes' }).click()
    await dialogOf(page).getByText('This was changed meanwhile').waitFor()
    await dialogOf(page).getByText('Acme and Sons').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-conflict')
    assert.equal((await show())['reputation_score'], 40)
    await dialogOf(page).getByRole('button', { name: 'Go on from there' }).click()
    assert.equal(await dialogOf(page).getByRole('textbox', { name: 'Name' }).inputValue(), 'Acme and Sons')
    assert.equal(await dialogOf(page).getByRole('textbox', { name: 'Reputation score' }).inputValue(), '55')
    await dialogOf(page).getByRole('button', { name: 'Save changes' }).click()
    await dialogOf(page).waitFor({ state: 'detached' })
    const { name, reputation_score } = await show()
    assert.deepEqual([name, reputation_score], ['Acme and Sons', 55])
    await body(200, admin.patch(`/admin/projects/${project.id}`, { name: 'Acme' }))
  })
})

describe('a session that ends in the middle of something', () => {
  it('is opened again over the form, of which nothing is lost', async () => {
    await openProject(hers)
    await hers.getByRole('button', { name: 'Lock' }).click()
    await dialogOf(hers).getByRole('textbox', { name: 'Reason' }).fill('Typed with care')
    await body(200, admin.patch(`/admin/users/${grace.id}`, { end_sessions: true, reason: 'For the test' }))
    await dialogOf(hers).getByRole('button', { name: 'Lock project' }).click()
    await hers.getByText('Your session has ended').waitFor()
    await picture(hers, 'session-ended')
    assert.deepEqual(await findings(hers), [])
    await hers.keyboard.press('Escape')
    await signIn(hers, grace, 30_000)
    // It is not done by itself: who knows when they came back.
    await dialogOf(hers).getByText('Look at it again, and press once more.').waitFor()
    assert.equal((await show())['is_locked'], false)
    await dialogOf(hers).getByRole('button', { name: 'Lock project' }).click()
    await hers.getByText('This project is locked').waitFor()
    await audited(admin, project.id, 'projects.edit', 'Typed with care')
  })

  it('and in which another person goes on, in another tab, shows and does nothing more of the first one’s', async () => {
    const mine = await desk.browser.enter(ada)
    await openProject(mine)
    await mine.getByRole('button', { name: 'Unlock' }).click()
    await dialogOf(mine).getByRole('textbox', { name: 'Reason' }).fill('Begun by Ada')
    await dialogOf(mine).getByText('is_locked').waitFor()
    // Grace's cookie in Ada's browser, as if she had signed in next door; Ada's own session is over.
    await mine.context().clearCookies()
    await mine.context().addCookies(await hers.context().cookies())
    const hersCaller = new Caller(desk.url, (await desk.postern('token', '--email', grace.email)).trim())
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
