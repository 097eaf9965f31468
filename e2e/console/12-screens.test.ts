import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'
import { audited } from './dialog.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada } = session
const page = await session.browser.enter(ada)
const link = (name: string) => page.getByRole('link', { name, exact: true })
const names = () => page.getByRole('table', { name: 'Projects' }).getByRole('link').allTextContents()

const reason = 'As the scenario begins'
const make = (name: string, planId: number) =>
  body<{ id: number }>(201, admin.post('/admin/projects', { name, user_id: ada.id, plan_id: planId, reason }))
const edit = (id: number, change: object) =>
  body(200, admin.patch(`/admin/projects/${id}`, { ...change, reason }))

/** Together with the four named projects, one more than fits on one page. */
const others = Array.from({ length: 47 }, (_, index) => `Customer ${String(index + 1).padStart(2, '0')}`)
let acme = { id: 0 }
let dubious = { id: 0 }

describe('screens, wide and narrow, light and dark', () => {
  it('of the sign-in page', async () => {
    await checkScreens(
      session,
      'sign-in',
      '/console/',
      (window) => window.getByRole('heading', { name: 'Sign in' }).waitFor(),
      session.browser.window,
    )
  })

  it('of an installation without projects', async () => {
    await page.goto('/console/projects')
    await page.getByText('No projects yet').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'projects-none')
    await page.goto('/console/projects?sort=name&locked=true')
    await page.getByText('No matching projects').waitFor()
  })

  describe('with projects and mail', () => {
    before(async () => {
      const starter = await makePlan(admin, { name: 'Starter' })
      // The owner alone already exceeds this plan's limit.
      const tiny = await makePlan(admin, { name: 'Tiny', max_users: 0 })
      for (const name of others) await make(name, starter.id)
      acme = await make('Acme', starter.id)
      await edit((await make('Barred', starter.id)).id, { is_locked: true })
      dubious = await make('Dubious', starter.id)
      await edit(dubious.id, { reputation_score: 31 })
      await make('Zealous', tiny.id)
      await mailOf(acme.id)
      await mailOf(dubious.id)
    })

    it('of the list of projects', async () => {
      await checkScreens(session, 'projects', '/console/projects', (window) =>
        window.getByRole('link', { name: 'Zealous' }).waitFor(),
      )
    })

    it('of a project', async () => {
      await checkScreens(session, 'project', `/console/projects/${acme.id}`, async (window) => {
        await window.getByText('Messages per day').first().waitFor()
        await window.getByText(/^1 of /).waitFor()
        await window.getByText('Awaiting delivery report').waitFor()
      })
    })

    it('of a project with interventions, a temporary override and an explained score', async () => {
      const path = `/admin/projects/${dubious.id}`
      const expires_at = new Date(Date.now() + 86_400_000).toISOString()
      const note = 'Many recipients of your last mailing do not exist. Please clean up your list.'
      await body(201, admin.post(`${path}/interventions`, { kind: 'warn', public_note: note, reason }))
      await body(
        201,
        admin.post(`${path}/interventions`, {
          ...{ kind: 'pace', pace_per_hour: 500, public_note: note, expires_at, reason },
        }),
      )
      await edit(dubious.id, { admin_subscription_status: 'active', allow_service_mta: true, expires_at })
      const home = `/console/projects/${dubious.id}`
      await checkScreens(session, 'project-paced', home, async (window) => {
        await window.getByText('Paced at 500 recipients per hour').waitFor()
        await window.getByText(/^Shared mail servers: restored to not allowed on /).waitFor()
        await window.getByRole('button', { name: /^Why \d+\?$/ }).click()
        await window.getByRole('table', { name: 'Parts of the score' }).waitFor()
        await window.getByText('7 days', { exact: true }).click()
      })
      await checkScreens(session, 'sending', `${home}/sending`, async (window) => {
        await window.getByRole('list', { name: 'Checks' }).waitFor()
        await window.getByRole('table', { name: 'Interventions' }).waitFor()
        await window.getByText('Awaiting delivery report').waitFor()
      })
    })

    it('of the palette', async () => {
      await checkScreens(session, 'palette', '/console/projects', async (window) => {
        await window.getByRole('link', { name: 'Zealous' }).waitFor()
        await window.keyboard.press('Control+k')
        const field = window.getByRole('combobox', { name: 'Jump to' })
        await field.and(window.locator(':focus')).waitFor()
        await window.keyboard.type('acm')
        await window.getByRole('option', { name: 'Acme' }).first().waitFor()
      })
    })
  })
})

/** Inserts thirty days of counters, in the form in which the mail database stores them. */
async function mailOf(projectId: number): Promise<void> {
  await session.database.query(
    `with days as (
       select (postern.now() at time zone 'UTC')::date - ago as day, 400 + 40 * (ago % 7) as mails
         from generate_series(0, 29) as ago
     ), counted as (
       insert into mail.daily_counters (project_id, day, sent, delivered, bounced, failed, complained)
       select $1, day, mails, mails - 16, 12, 3, 1 from days
     )
     insert into mail.usage (project_id, period, starts_on, accepted)
     select $1::bigint, 'day', day, mails from days
     union all select $1, 'month', date_trunc('month', day)::date, sum(mails) from days group by 3`,
    [projectId],
  )
}

async function choose(label: string, option: string): Promise<void> {
  await page.getByRole('search').getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}
const asked = () => Object.fromEntries(new URL(page.url()).searchParams)
const only = async (name: string) => {
  await link('Customer 47').waitFor({ state: 'hidden' })
  await link(name).waitFor()
  assert.deepEqual(await names(), [name])
}

describe('the list of projects', () => {
  it('is filtered by lock, limits, and minimum and maximum score', async () => {
    await page.goto('/console/projects')
    await choose('Lock', 'Locked')
    await only('Barred')
    assert.deepEqual(asked(), { locked: 'true' })
    await page.goto('/console/projects')
    await choose('Limits', 'Over a limit')
    await only('Zealous')
    assert.deepEqual(asked(), { over_limit: 'true' })
    await page.goto('/console/projects')
    await page.getByRole('textbox', { name: 'Max. score' }).fill('60')
    await only('Dubious')
    await page.getByRole('textbox', { name: 'Min. score' }).fill('40')
    await page.getByText('No matching projects').waitFor()
    assert.deepEqual(asked(), { max_score: '60', min_score: '40' })
  })

  it('ignores invalid scores', async () => {
    await page.goto('/console/projects?max_score=250&min_score=-7')
    await link('Zealous').waitFor()
    assert.equal(await page.getByRole('textbox', { name: 'Max. score' }).inputValue(), '100')
    assert.equal(await page.getByRole('textbox', { name: 'Min. score' }).inputValue(), '0')
    await page.goto('/console/projects?max_score=many&min_score=1.5')
    await link('Zealous').waitFor()
    assert.equal(await page.getByRole('textbox', { name: 'Max. score' }).inputValue(), '')
    await page.getByRole('textbox', { name: 'Max. score' }).pressSequentially('-')
    assert.equal(await page.getByRole('alert').count(), 0)
  })

  it('is sorted, and paged', async () => {
    await page.goto('/console/projects')
    await page.getByRole('button', { name: 'Project', exact: true }).click()
    await page
      .getByRole('columnheader', { name: 'Project', exact: true })
      .and(page.locator('[aria-sort=ascending]'))
      .waitFor()
    await page.getByRole('button', { name: 'Project', exact: true }).click()
    await link('Customer 02').waitFor()
    await link('Acme').waitFor({ state: 'hidden' })
    assert.deepEqual((await names()).slice(0, 3), ['Zealous', 'Dubious', 'Customer 47'])
    assert.deepEqual(asked(), { sort: '-name' })
    await page.getByRole('button', { name: 'Next page' }).click()
    await link('Acme').waitFor()
    assert.deepEqual(await names(), ['Acme'])
    assert.equal(await page.getByRole('button', { name: 'Next page' }).count(), 0)
    await page.getByRole('button', { name: 'First page' }).click()
    await link('Zealous').waitFor()
    await page.getByRole('button', { name: 'Project', exact: true }).click()
    await link('Acme').waitFor()
    assert.deepEqual((await names()).slice(0, 2), ['Acme', 'Barred'])
  })
})

describe('times', () => {
  const time = (window: Page) => window.locator('time').first()
  const item = (window: Page, name: string | RegExp) =>
    window.getByRole('menuitemradio', { name, exact: typeof name === 'string' })

  it('are shown in the viewer’s zone or in UTC, also in the filters, and the choice is kept', async () => {
    const window = await session.browser.enter(ada, { zone: 'Asia/Kolkata' })
    await window.goto('/console/audit')
    await time(window).waitFor()
    const instant = Date.parse((await time(window).getAttribute('datetime')) ?? '')
    const utc = plain(instant)
    const local = `${plain(instant + 5.5 * 3_600_000).replace('UTC', 'GMT+5:30')}`
    assert.equal(await time(window).textContent(), local)
    assert.equal(await time(window).getAttribute('title'), utc)

    // A day begins at midnight in the zone that the filter names.
    const asked = window.waitForRequest(/\/v1\/admin\/audit\?.*from=/)
    await window.goto('/console/audit?from=2026-01-15&to=2026-01-15')
    const query = new URL((await asked).url()).searchParams
    assert.deepEqual(
      [query.get('from'), query.get('to')],
      ['2026-01-14T18:30:00.000Z', '2026-01-15T18:30:00.000Z'],
    )
    await window.getByLabel('From (GMT+5:30)').waitFor()

    await window.getByRole('button', { name: 'Ada' }).click()
    assert.equal(await item(window, /^Local/).getAttribute('aria-checked'), 'true')
    assert.deepEqual(await findings(window), [])
    await picture(window, 'account')
    const askedAgain = window.waitForRequest(/\/v1\/admin\/audit\?.*from=2026-01-15T00/)
    await item(window, 'UTC').click()
    await askedAgain
    await window.getByLabel('From (UTC)').waitFor()
    await window.goto('/console/audit')
    await time(window).waitFor()
    assert.equal(await time(window).textContent(), utc)
    assert.equal(await time(window).getAttribute('title'), local)
    await window.context().close()
  })
})

/** `2026-11-14 09:30:00 UTC`. */
const plain = (instant: number): string =>
  `${new Date(instant).toISOString().slice(0, 19).replace('T', ' ')} UTC`

/** What a screen reader says after a navigation. */
const announced = (title: string) =>
  page.locator('[aria-live="polite"]', { hasText: title }).waitFor({ state: 'attached' })

/** Uses only the keyboard. */
async function tabTo(target: Locator): Promise<void> {
  const there = target.and(page.locator(':focus'))
  for (let presses = 0; presses < 60; presses++) {
    if ((await there.count()) === 1) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`no Tab leads to ${target}`)
}

describe('without a mouse', () => {
  it('a project is found, opened and locked', async () => {
    await page.goto('/console/')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.keyboard.type('gp')
    await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor()
    await link('Zealous').waitFor()
    await page.keyboard.press('/')
    await page.getByRole('textbox', { name: 'Search' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('acm')
    // Each letter can load a list of its own, so the last one must be complete before the focus moves into it.
    await page.waitForURL(({ searchParams }) => searchParams.get('q') === 'acm')
    await link('Zealous').waitFor({ state: 'hidden' })
    await link('Acme').waitFor()
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await link('Acme').and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Acme', level: 1 }).waitFor()
    await tabTo(page.getByRole('button', { name: 'Lock', exact: true }))
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Lock Acme' })
    await dialog.getByRole('textbox', { name: 'Reason' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('Card testing')
    const button = dialog.getByRole('button', { name: 'Lock project', disabled: false })
    await button.waitFor()
    await tabTo(button)
    await page.keyboard.press('Enter')
    await page.getByText('This project is locked').waitFor()
    const { is_locked } = await body<{ is_locked: boolean }>(200, admin.get(`/admin/projects/${acme.id}`))
    assert.equal(is_locked, true)
    await audited(admin, acme.id, 'projects.edit', 'Card testing')
    // The dialog has returned the focus to the page, and the tabs have digits.
    await page.getByRole('button', { name: 'Unlock' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('6')
    await page.getByRole('heading', { name: 'Members', level: 2 }).waitFor()
    await announced('Members · Acme · Postern')
  })

  it('rows are selected, and shortcuts are listed', async () => {
    await page.keyboard.type('gp')
    await link('Zealous').waitFor()
    await announced('Projects · Postern')
    const isSelected = () => page.getByRole('checkbox', { name: 'Select Acme' }).isChecked()
    // The row that was opened last.
    await page.keyboard.type('jx')
    await page.getByText('1 project selected').waitFor()
    assert.equal(await isSelected(), true)
    await page.keyboard.press('x')
    assert.equal(await isSelected(), false)
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    await help.getByRole('row', { name: 'Select or deselect the row x' }).waitFor()
    await help.getByRole('row', { name: 'Suppressions g s' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'shortcuts')
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })
    await link('Acme').and(page.locator(':focus')).waitFor()
  })

  it('keys have no effect in fields and dialogs, and can be switched off', async () => {
    await page.keyboard.press('/')
    await page.keyboard.type('g?x')
    assert.equal(await page.getByRole('textbox', { name: 'Search' }).inputValue(), 'g?x')
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Backspace')
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    await help.waitFor()
    await page.keyboard.type('gu')
    await help.getByRole('switch', { name: 'Shortcuts with single keys' }).uncheck()
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })
    await page.keyboard.type('gu?')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('keyboard')
    await page.getByRole('option', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Enter')
    await help.getByRole('switch', { name: 'Shortcuts with single keys' }).check()
    await page.keyboard.press('Escape')
    assert.equal(new URL(page.url()).pathname, '/console/projects')
    await help.waitFor({ state: 'detached' })
    await page.keyboard.type('gu')
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
  })
})
