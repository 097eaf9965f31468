import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, database } = session

let page: Page
before(async () => {
  page = await session.browser.enter(ada)
})

const table = (name: string) => page.getByRole('table', { name })
const section = (name: string) =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: new RegExp(`^${name}`) })
const row = (name: RegExp) => table('Projects that need attention').getByRole('row', { name })

describe('the overview', () => {
  it('is the home page, and shows the running process of a new installation', async () => {
    await page.goto('/console/')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    assert.equal(await section('Overview').getAttribute('aria-current'), 'page')
    assert.equal(await section('Overview').textContent(), 'Overview')
    assert.equal(await section('Projects').getAttribute('aria-current'), null)
    await page.getByText('No project needs attention').waitFor()
    await table('Processes')
      .getByRole('row', { name: /postern all .* running/ })
      .waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'overview-new')
  })

  it('refreshes without a click, and says how old it is', async () => {
    await page.getByText(/^Updated [2-9] s ago$/).waitFor()
    const { id: planId } = await makePlan(admin, { name: 'Starter' })
    const { id } = await makeProject(admin, ada.id, planId, 'Acme')
    await body(
      201,
      admin.post(`/admin/projects/${id}/interventions`, { kind: 'lock', reason: 'Bought addresses' }),
    )
    await row(/Acme intervention In force: lock/).waitFor()
    await page.getByRole('link', { name: 'Ada started a lock on Acme' }).waitFor()
    await page.getByText(/^Updated [0-9] s ago$/).waitFor()
  })

  it('shows mail, rates, the queue and every cause of attention, with links', async () => {
    await fill()
    await page.reload()
    await page.getByText('Recipients per hour').first().waitFor()
    await page.getByText('2.5 %', { exact: true }).first().waitFor()
    await row(/Bulk mail policy fired Bounce rate of 10 % or more/).waitFor()
    await row(/Bulk mail over plan 1 of 0 members/).waitFor()
    await row(/Acme appeal Appeal against the lock/).waitFor()
    await section('Overview')
      .getByText(/^3\s*: 1 open appeal, 1 project with a failing domain, 1 project for/)
      .waitFor()
    await row(/Dubious domain failing mail\.dubious\.example/)
      .getByRole('link', { name: 'mail.dubious.example' })
      .click()
    await page.getByRole('heading', { name: 'mail.dubious.example' }).first().waitFor()
    await page.goBack()
    await row(/Bulk mail policy fired/)
      .getByRole('link', { name: 'Bounce rate of 10 % or more' })
      .click()
    await page.waitForURL(/\/sending$/)
    const microsoft = /Microsoft \(Outlook, Hotmail\) 28,100 92\.17 % .* 6\.76 %/
    await page.goto('/console/')
    await table('Mailbox providers').getByRole('row', { name: microsoft }).waitFor()
    await checkScreens(session, 'overview', '/console/', async (window) => {
      await window.getByText('Recipients per hour').first().waitFor()
      await window.getByRole('table', { name: 'Last changes' }).waitFor()
      await window.getByRole('link', { name: 'Ada started a lock on Acme' }).waitFor()
    })
  })

  it('is continued by the volume and the rates of each project, and by its mailbox providers', async () => {
    await page.goto('/console/projects?sort=name')
    await table('Projects')
      .getByRole('row', { name: /Bulk mail .* 90,500 2\.38 % 0\.1 %/ })
      .waitFor()
    await page.getByRole('combobox', { name: 'Figures of' }).click()
    await page.getByRole('option', { name: '24 hours' }).click()
    await table('Projects')
      .getByRole('row', { name: /Bulk mail 100 0 – – / })
      .waitFor()
    await table('Projects').getByRole('link', { name: 'Bulk mail' }).click()
    await table('Mailbox providers')
      .getByRole('row', { name: /Gmail 61,200/ })
      .waitFor()
    const path = new URL(page.url()).pathname
    await checkScreens(session, 'project-volume', path, (window) =>
      window.getByRole('table', { name: 'Mailbox providers' }).waitFor(),
    )
    await checkScreens(session, 'projects-volume', '/console/projects', (window) =>
      window.getByRole('row', { name: /Bulk mail .* 90,500/ }).waitFor(),
    )
  })

  it('cannot be misread when a process or an operator has stopped the mail', async () => {
    await database.query(
      `insert into postern.processes (id, kind, host, version, seen_at)
       values (gen_random_uuid(), 'worker', 'mail-2', '0.1.0', postern.now() - interval '5 minutes')`,
    )
    await session.postern('queue', 'hold', '--provider', 'service', '--reason', 'The MTA is replaced')
    await page.goto('/console/')
    await page.getByText('The process “worker” on mail-2 does not respond.').waitFor()
    await page.getByText('Mail over the shared mail servers is held').waitFor()
    await section('Overview')
      .getByText(/2 failures, 1 open appeal/)
      .waitFor()
    await table('Processes')
      .getByRole('row', { name: /postern worker .* does not respond/ })
      .waitFor()
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 1200 })
      await table('Last changes').getByRole('row').last().scrollIntoViewIfNeeded()
      await picture(page, `overview-below-${width}`)
    }
    await checkScreens(session, 'overview-failures', '/console/', (window) =>
      window.getByText('The process “worker” on mail-2 does not respond.').waitFor(),
    )
  })
})

describe('the navigation of a narrow window', () => {
  it('says what needs attention, and opens and closes by keyboard', async () => {
    const narrow = await session.browser.enter(ada, { width: 390 })
    await narrow.goto('/console/')
    const menu = narrow.getByRole('button', { name: /^Menu, 2 failures, 1 open appeal/ })
    await menu.waitFor()
    const users = narrow.getByRole('link', { name: 'Users' })
    assert.equal(await users.isVisible(), false)
    await menu.focus()
    await narrow.keyboard.press('Enter')
    await users.waitFor()
    assert.equal(await menu.getAttribute('aria-expanded'), 'true')
    assert.deepEqual(await findings(narrow), [])
    for (const scheme of ['light', 'dark'] as const) {
      await narrow.emulateMedia({ colorScheme: scheme })
      await picture(narrow, `navigation-390-${scheme}`)
    }
    await narrow.keyboard.press('Escape')
    await users.waitFor({ state: 'hidden' })
    await menu.and(narrow.locator(':focus')).waitFor()
    await menu.click()
    await users.click()
    await narrow.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await users.waitFor({ state: 'hidden' })
    await narrow.context().close()
  })
})

/** A day of mail, and one project for each cause of attention. */
async function fill(): Promise<void> {
  const { id: tiny } = await makePlan(admin, { name: 'Tiny', max_users: 0 })
  const bulk = await body<{ id: number }>(
    201,
    admin.post('/admin/projects', { name: 'Bulk mail', user_id: ada.id, plan_id: tiny, reason: 'Agreed' }),
  )
  const { id: planId } = await makePlan(admin, { name: 'Large' })
  const dubious = await makeProject(admin, ada.id, planId, 'Dubious')
  const domain = await body<{ id: number }>(
    201,
    admin.post(`/admin/projects/${dubious.id}/domains`, {
      ...{ name: 'mail.dubious.example', mta_provider: 'service', reason: 'Needed' },
    }),
  )
  await database.query(
    `update control.domains set status = 'verified', verified_at = postern.now(), failing_since = null where id = $1`,
    [domain.id],
  )
  await database.query('update control.domains set failing_since = postern.now() where id = $1', [domain.id])
  await database.query(
    `insert into control.firings (policy_id, policy_version, project_id, at, value, counted, baseline, outcome)
     select id, 1, $1, postern.now(), 12, 120, 1000, 'recorded' from control.policies
      where name = 'Bounce rate of 10 % or more'`,
    [bulk.id],
  )
  await database.query(
    `insert into control.appeals (intervention_id, project_id, user_id, text)
     select id, project_id, $1, 'We have removed the list.' from control.interventions where ended_at is null`,
    [ada.id],
  )
  await database.query('delete from mail.sending_totals')
  await database.query(
    `insert into mail.sending_totals
       (bucket_at, sent, delivered, deferred, bounced, failed, complained, suppressed, rejected)
     select date_bin('5 minutes', postern.now(), 'epoch') - n * interval '5 minutes', mails, mails - mails / 20, 2,
            mails / 40, 1, n % 2, 0, 0
       from generate_series(1, 280) as n, lateral (select 400 + 40 * (n / 12 % 7) as mails) as sent
     on conflict do nothing`,
  )
  const figures = `values ('gmail', 61200, 60800, 900, 300, 20), ('microsoft', 28100, 25900, 3100, 1900, 90),
    ('t_online', 4020, 4015, 8, 4, 0), ('other', 33000, 32100, 400, 800, 12)`
  const columns = 'mailbox_provider, sent, delivered, deferred, bounced, complained'
  const lastHour = "date_trunc('hour', postern.now() - interval '1 hour')"
  await database.query(
    `insert into mail.mailbox_provider_totals (hour_at, ${columns}) select ${lastHour}, * from (${figures}) as f`,
  )
  await database.query(
    `insert into mail.mailbox_provider_counters (project_id, hour_at, ${columns})
     select $1, ${lastHour}, * from (${figures}) as f`,
    [bulk.id],
  )
  await database.query(
    `insert into mail.daily_counters (project_id, day, sent, delivered, bounced, complained)
     select $1, current_date - n, 18100, 17400, 430, 18 from generate_series(0, 4) as n`,
    [bulk.id],
  )
}
