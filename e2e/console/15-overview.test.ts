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
const row = (name: RegExp) => table('Projects that need attention').getByRole('row', { name })

describe('the overview', () => {
  it('is the home page, and shows the running process of a new installation', async () => {
    await page.goto('/console/')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    const entry = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Overview' })
    assert.equal(await entry.getAttribute('aria-current'), 'page')
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
    await row(/Dubious domain failing mail\.dubious\.example/)
      .getByRole('link', { name: 'mail.dubious.example' })
      .click()
    await page.getByRole('heading', { name: 'mail.dubious.example' }).first().waitFor()
    await page.goBack()
    await row(/Bulk mail policy fired/)
      .getByRole('link', { name: 'Bounce rate of 10 % or more' })
      .click()
    await page.waitForURL(/\/sending$/)
    await checkScreens(session, 'overview', '/console/', async (window) => {
      await window.getByText('Recipients per hour').first().waitFor()
      await window.getByRole('table', { name: 'Last changes' }).waitFor()
      await window.getByRole('link', { name: 'Ada started a lock on Acme' }).waitFor()
    })
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
}
