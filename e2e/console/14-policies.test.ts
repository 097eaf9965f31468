import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, database } = session
const { id: planId } = await makePlan(admin, { name: 'Starter' })
const acme = await makeProject(admin, ada.id, planId, 'Acme')
const bulk = await makeProject(admin, ada.id, planId, 'Bulk mail')
const dubious = await makeProject(admin, ada.id, planId, 'Dubious')
const careful = await makeProject(admin, ada.id, planId, 'Careful')

interface Policy {
  id: number
  name: string
  mode: string
  threshold: number
  tripped_at: string | null
}
const policies = async () => (await body<{ data: Policy[] }>(200, admin.get('/admin/policies'))).data
const policyOf = async (name: string): Promise<Policy> => {
  const found = (await policies()).find((policy) => policy.name === name)
  assert.ok(found, `there is no policy ${name}`)
  return found
}
const warning = await policyOf('Bounce rate of 5 % or more')
const pace = await policyOf('Bounce rate of 10 % or more')

let page: Page
before(async () => {
  await fillCounters()
  page = await session.browser.enter(ada)
})

const button = (name: string) => page.getByRole('button', { name, exact: true })
const heading = (name: string) => page.getByRole('heading', { name, level: 1 })
const closed = () => dialogOf(page).waitFor({ state: 'detached' })

describe('a policy', () => {
  it('is in the list, with what it reacts to and how', async () => {
    await page.goto('/console/')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Policies' }).click()
    await heading('Policies').waitFor()
    const row = page.getByRole('row', { name: /Bounce rate of 10 % or more/ })
    await row.getByText('Bounce rate ≥ 10 % in 24 hours, at least 500 recipients').waitFor()
    const text = (await row.textContent()) ?? ''
    assert.match(text, /Shadow.*pace of 500 per hour for 24 hours/)
    assert.equal(await page.getByRole('table', { name: 'Policies' }).getByRole('row').count(), 7)
    assert.deepEqual(await findings(page), [])
    await row.getByRole('link', { name: 'Bounce rate of 10 % or more' }).click()
    await heading('Bounce rate of 10 % or more').waitFor()
  })

  it('shows what it would have done in the last 30 days, and what administrators did', async () => {
    await page
      .getByText(
        'Would have fired 3 times for 2 projects; 1 of them was locked by an administrator anyway; 8,000 recipients delayed.',
      )
      .waitFor()
    const timeline = page.getByRole('figure', { name: /Firings by project/ })
    assert.deepEqual(await timeline.getByRole('link').allTextContents(), ['Acme', 'Dubious'])
    assert.match((await timeline.textContent()) ?? '', /Locked by an administrator: /)
    const rows = page.getByRole('table', { name: 'Firings of the backtest' }).getByRole('row')
    assert.equal(await rows.count(), 4)
    assert.match((await rows.last().textContent()) ?? '', /Dubious.*30 %300 of 1,000 recipients8,000\d{4}-/)
    await page.getByText(/^Administrators restricted 1 other project.*: Careful\.$/).waitFor()
    await button('Copy table').click()
    await button('Copied').waitFor()
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    assert.match(copied, /^Project\tTime\t.*\nAcme\t.* UTC\t15 %\t150 of 1,000 recipients\t0\tno\n/)
    await page.getByText('No firings recorded').waitFor()
    await checkScreens(session, 'policy', `/console/policies/${pace.id}`, (window) =>
      window.getByText(/^Would have fired 3 times/).waitFor(),
    )
  })

  it('is edited with the backtest of the new threshold before it is saved', async () => {
    await button('Edit policy').click()
    await heading('Edit Bounce rate of 10 % or more').waitFor()
    await page.getByText(/The backtest runs before the policy is saved/).waitFor()
    await page.getByRole('textbox', { name: 'Threshold (at least)' }).fill('8')
    await page.getByText('Bounce rate ≥ 8 % in 24 hours, at least 500 recipients').waitFor()
    assert.deepEqual(await findings(page), [])
    await button('Backtest').click()
    await page.getByText(/^Would have fired 4 times for 3 projects; /).waitFor()
    const timeline = page.getByRole('figure', { name: /Firings by project/ })
    assert.deepEqual(await timeline.getByRole('link').allTextContents(), ['Acme', 'Bulk mail', 'Dubious'])
    await page.getByText('Enter a reason.').waitFor()
    assert.equal(await button('Save policy').isDisabled(), true)
    assert.equal((await policyOf(pace.name)).threshold, 10)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'policy-edit')
    await page.getByRole('textbox', { name: 'Reason' }).fill('It missed Bulk mail')
    await button('Save policy').click()
    await heading('Bounce rate of 10 % or more').waitFor()
    await page.getByText('Bounce rate ≥ 8 % in 24 hours, at least 500 recipients').waitFor()
    await page.getByText(/^Would have fired 4 times/).waitFor()
    await audited(admin, 0, 'policies.edit', 'It missed Bulk mail')
    await checkScreens(session, 'policy-form', `/console/policies/${pace.id}/edit`, async (window) => {
      await window.getByRole('button', { name: 'Backtest', exact: true }).click()
      await window.getByText(/^Would have fired 4 times/).waitFor()
    })
  })

  it('is not saved over the change of another administrator', async () => {
    await button('Edit policy').click()
    await heading('Edit Bounce rate of 10 % or more').waitFor()
    await body(200, admin.patch(`/admin/policies/${pace.id}`, { minimum_volume: 600, reason: 'Fewer' }))
    await page.getByRole('textbox', { name: 'Name' }).fill('Bounce rate of 8 % or more')
    await page.getByRole('textbox', { name: 'Reason' }).fill('Named after its threshold')
    await button('Save policy').click()
    await page.getByText('This was changed after you opened it').waitFor()
    await page.getByRole('row', { name: /Minimum volume 500 600/ }).waitFor()
    await button('Continue with my edits').click()
    await page.getByText(/^Would have fired /).waitFor()
    await button('Save policy').click()
    await heading('Bounce rate of 8 % or more').waitFor()
    await page.getByText('Bounce rate ≥ 8 % in 24 hours, at least 600 recipients').waitFor()
  })

  it('is set to enforce', async () => {
    await button('Enforce').click()
    const dialog = dialogOf(page)
    await dialog.getByText(/^From the next evaluation on, a firing limits the project/).waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'policy-enforce')
    await confirm(page, 'Enforce', 'It fired only for abusive projects')
    await closed()
    await page.getByText('A firing starts the intervention.').waitFor()
    await button('Set to shadow').waitFor()
    assert.equal((await policyOf('Bounce rate of 8 % or more')).mode, 'enforce')
    await audited(admin, 0, 'policies.edit', 'It fired only for abusive projects')
  })
})

describe('a new policy', () => {
  const hostile = `<img src=x onerror="document.title='owned'">`

  it('is backtested before it is created, and deleted', async () => {
    await page.goto('/console/policies')
    await button('New policy').click()
    await heading('New policy').waitFor()
    await page.getByRole('textbox', { name: 'Name' }).fill(hostile)
    await page.getByRole('combobox', { name: 'Signal' }).click()
    await page.getByRole('option', { name: 'Score' }).click()
    assert.equal(await page.getByRole('textbox', { name: 'Window' }).isDisabled(), true)
    await page.getByRole('textbox', { name: 'Threshold (at most)' }).fill('40')
    await page.getByText('Score ≤ 40, at least 500 recipients in 7 days').waitFor()
    await page.getByRole('combobox', { name: 'Except' }).fill('Dub')
    // The list of options moves when the search has ended.
    await page.getByRole('option', { name: /^Acme/ }).waitFor({ state: 'hidden' })
    await page.getByRole('option', { name: /^Dubious/ }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('textbox', { name: 'Reason' }).fill('Scores')
    await button('Create policy').click()
    await page.getByText(/The score of each project contains the offset/).waitFor()
    assert.equal((await policies()).length, 6)
    await button('Create policy').click()
    await heading(hostile).waitFor()
    await page.getByText('All projects, except 1 project').waitFor()
    await staysText(page)
    await button('More… for this policy').click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await confirm(page, 'Delete policy', 'Only a trial')
    await closed()
    await heading('Policies').waitFor()
    await audited(admin, 0, 'policies.delete', 'Only a trial')
  })
})

describe('a firing', () => {
  before(async () => {
    await mailOf(acme.id)
    await fire(acme.id, warning.id, null)
    await fire(acme.id, warning.id, await intervene(acme.id, warning.id))
  })

  it('is on the page of the policy', async () => {
    await page.goto(`/console/policies/${warning.id}`)
    const rows = page.getByRole('table', { name: 'Firings', exact: true }).getByRole('row')
    await rows.nth(2).waitFor()
    // The names of projects are loaded after the rows.
    await rows.nth(1).getByRole('link', { name: 'Acme' }).waitFor()
    assert.match(
      (await rows.nth(1).textContent()) ?? '',
      /^Acme.*Bounce rate 7\.5 % \(75 of 1,000 recipients\)enforcedShow intervention$/,
    )
    assert.match(
      (await rows.nth(2).textContent()) ?? '',
      /recordedNothing was done: the policy was in shadow/,
    )
    await page.goto('/console/policies')
    await page.getByRole('row', { name: /Bounce rate of 5 % or more.*(ago|yesterday)/ }).waitFor()
  })

  it('is on the page of the project, in the chart and in the list, with its intervention', async () => {
    await checkScreens(session, 'project-firings', `/console/projects/${acme.id}`, (window) =>
      window.getByText('Firings').first().waitFor(),
    )
    const sending = `/console/projects/${acme.id}/sending`
    await page.goto(sending)
    const started = page.getByRole('alert').filter({ hasText: 'This project has a warning' })
    await started
      .getByText(
        /by the policy “Bounce rate of 5 % or more”, without expiry\. Reason: The bounce rate was 7\.5 %\./,
      )
      .waitFor()
    const section = page.getByRole('region', { name: 'Firings of policies' })
    const rows = section.getByRole('table', { name: 'Firings', exact: true }).getByRole('row')
    await rows.nth(2).waitFor()
    assert.match((await rows.nth(1).textContent()) ?? '', /Bounce rate of 5 % or more.*7\.5 %/)
    const chart = section.getByRole('figure', { name: /Recipients per day/ })
    await chart
      .locator('title')
      .first()
      .filter({ hasText: /“Bounce rate of 5 % or more” fired: 7\.5 %/ })
      .waitFor({ state: 'attached' })
    await checkScreens(session, 'sending-firings', sending, async (window) => {
      await window.getByRole('region', { name: 'Firings of policies' }).scrollIntoViewIfNeeded()
      await window.getByText('Show intervention').waitFor()
    })
    await section.getByRole('link', { name: 'Bounce rate of 5 % or more' }).first().click()
    await heading('Bounce rate of 5 % or more').waitFor()
  })
})

describe('the breaker', () => {
  const banner = (window: Page) => window.getByRole('alert').filter({ hasText: 'The breaker of the policy' })
  before(async () => {
    await database.query(
      `update control.policies set mode = 'shadow', tripped_at = postern.now(), version = version + 1 where id = $1`,
      [pace.id],
    )
  })

  it('is on every page until the mode of the policy is set', async () => {
    for (const path of ['projects', `projects/${acme.id}`, 'users', 'audit', 'plans']) {
      await page.goto(`/console/${path}`)
      await banner(page)
        .getByText(
          /^The breaker of the policy “Bounce rate of 8 % or more” tripped on .*The policy only records firings/,
        )
        .waitFor()
    }
    await page.goto('/console/policies')
    await page.getByRole('row', { name: /Bounce rate of 8 % or more.*tripped/ }).waitFor()
    await checkScreens(session, 'policies-tripped', '/console/policies', (window) => banner(window).waitFor())
    await page.getByRole('link', { name: 'Review the policy Bounce rate of 8 % or more' }).click()
    await page.getByText('The breaker of this policy tripped').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'policy-tripped')
    await button('Keep in shadow').click()
    await dialogOf(page).getByText('The breaker is reset.').waitFor()
    await confirm(page, 'Keep in shadow', 'A feedback source was broken')
    await closed()
    await banner(page).waitFor({ state: 'detached' })
    assert.equal((await policyOf('Bounce rate of 8 % or more')).tripped_at, null)
    await button('More… for this policy').click()
    await page.getByRole('menuitem', { name: 'Audit' }).click()
    await page.getByText('Ada reset the breaker of policy Bounce rate of 8 % or more').waitFor()
  })
})

/** Counters that the evaluation does not read, because they are older than 24 hours. */
async function fillCounters(): Promise<void> {
  await database.query(
    `do $$
     begin
       for ago in 1..30 loop
         execute format(
           'create table if not exists mail.%I partition of mail.sending_counters for values from (%L) to (%L)',
           'sending_counters_' || to_char((postern.now() at time zone 'UTC')::date - ago, 'YYYYMMDD'),
           ((postern.now() at time zone 'UTC')::date - ago) || ' 00:00+00',
           ((postern.now() at time zone 'UTC')::date - ago + 1) || ' 00:00+00');
       end loop;
     end $$`,
  )
  await count(acme.id, 20, 1000, 150)
  await count(bulk.id, 10, 2000, 160)
  await count(acme.id, 9, 1000, 150)
  await count(dubious.id, 4, 1000, 300)
  // Sent afterwards: 8,000 more than the pace allows in 24 hours.
  await count(dubious.id, 3.9, 20_000, 0)
  await count(careful.id, 4, 1000, 5)
  await lock(dubious.id, 3.5)
  await lock(careful.id, 2)
}

const count = (projectId: number, daysAgo: number, sent: number, bounced: number) =>
  database.query(
    `insert into mail.sending_counters (project_id, bucket_at, sent, delivered, bounced)
     values ($1, date_bin('5 minutes', postern.now() - $2 * interval '1 day', 'epoch'), $3, $3::int - $4::int, $4)`,
    [projectId, daysAgo, sent, bounced],
  )

/** For a day, by an administrator. */
const lock = (projectId: number, daysAgo: number) =>
  database.query(
    `insert into control.interventions (project_id, kind, source, started_by, reason, created_at, ended_at, ended_by)
     select $1, 'lock', 'administrator', $2, 'Bought addresses', at, at + interval '1 day', 'administrator'
       from (select postern.now() - $3 * interval '1 day' as at) as times`,
    [projectId, ada.id, daysAgo],
  )

const figures = { value: 7.5, counted: 75, baseline: 1000 }
let fired = 0

const fire = (projectId: number, policyId: number, interventionId: number | null) =>
  database.query(
    `insert into control.firings (policy_id, policy_version, project_id, at, value, counted, baseline, outcome,
                                  intervention_id)
     values ($1, 1, $2, postern.now() - $3 * interval '26 hours', $4, $5, $6, $7, $8)`,
    [
      ...[policyId, projectId, 3 - ++fired, figures.value, figures.counted, figures.baseline],
      ...[interventionId === null ? 'recorded' : 'enforced', interventionId],
    ],
  )

/** As a worker starts it: a warning in force. */
async function intervene(projectId: number, policyId: number): Promise<number> {
  const evidence = {
    signal: 'bounce_rate',
    window_minutes: 1440,
    threshold: 5,
    policy_version: 1,
    ...figures,
  }
  const [row] = await database.query<{ id: string }>(
    `insert into control.interventions (project_id, kind, source, policy_id, reason, evidence)
     values ($1, 'warn', 'policy', $2, 'The bounce rate was 7.5 %.', $3) returning id`,
    [projectId, policyId, JSON.stringify({ ...evidence, at: new Date().toISOString() })],
  )
  return Number(row?.id)
}

/** Thirty days of mail, for the chart. */
const mailOf = (projectId: number) =>
  database.query(
    `insert into mail.daily_counters (project_id, day, sent, delivered, bounced)
     select $1, (postern.now() at time zone 'UTC')::date - ago, 400 + 40 * (ago % 7), 400, 20
       from generate_series(0, 29) as ago`,
    [projectId],
  )
