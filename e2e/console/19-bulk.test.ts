import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, signIn, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, grace, database } = session
const { id: planId } = await makePlan(admin, { name: 'Starter' })
const { id: otherPlanId } = await makePlan(admin, { name: 'Business' })
const hostile = `<img src=x onerror="document.title='owned'">`
const projects: { id: number; name: string }[] = []
for (const name of ['Acme', 'Bakery', 'Bicycles', hostile])
  projects.push(await makeProject(admin, ada.id, planId, name))
const [acme = assert.fail(), bakery = assert.fail(), bicycles = assert.fail()] = projects

let page: Page
before(async () => {
  page = await session.browser.enter(ada)
})

const button = (name: string) => page.getByRole('button', { name, exact: true })
const heading = (name: string) => page.getByRole('heading', { name, level: 1 })
const select = (name: string) => page.getByRole('checkbox', { name: `Select ${name}` }).check()
const selected = () => page.getByRole('region', { name: 'Selected projects' })
const shown = (id: number) => body<Record<string, unknown>>(200, admin.get(`/admin/projects/${id}`))

describe('selected projects', () => {
  it('are locked after a preview with an example, and the page shows the progress', async () => {
    await page.goto('/console/projects')
    await select('Acme')
    await select('Bakery')
    await selected().getByText('2 projects selected').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'bulk-selection')
    await button('Lock').click()
    const dialog = dialogOf(page)
    await dialog.getByText('Projects changed: 2, unchanged: 0, refused: 0.').waitFor()
    await dialog.getByText('Bakery', { exact: true }).click()
    await dialog.getByRole('row', { name: /Locked no yes/ }).waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'bulk-preview')
    assert.equal((await shown(acme.id))['is_locked'], false)
    await confirm(page, 'Lock projects', 'Spam wave')
    await heading('Lock 2 projects').waitFor()
    await page.getByText('2 of 2 projects done').waitFor()
    await page.getByText('finished', { exact: true }).waitFor()
    for (const { id } of [acme, bakery]) {
      assert.equal((await shown(id))['is_locked'], true)
      await audited(admin, id, 'projects.edit', 'Spam wave')
    }
    assert.equal((await shown(bicycles.id))['is_locked'], false)
    await checkScreens(session, 'bulk-finished', page.url(), (window) =>
      window.getByText('2 of 2 projects done').waitFor(),
    )
  })

  it('have an audit entry that leads to the bulk action', async () => {
    await page.goto(`/console/projects/${acme.id}/audit`)
    await page.getByRole('link', { name: /Ada locked Acme/ }).click()
    await page.getByRole('link', { name: 'Show bulk action' }).click()
    await heading('Lock 2 projects').waitFor()
    await button('Audit').click()
    await page.getByText('Ada started a bulk action (projects.edit on 2 projects)').waitFor()
  })
})

describe('all projects that match', () => {
  it('get another plan, after the administrator has signed in again', async () => {
    // In a window of her own, because signing in again ends the session.
    const hers = await session.browser.enter(grace)
    const dialog = dialogOf(hers)
    await hers.goto('/console/projects?locked=false')
    await hers.getByRole('checkbox', { name: 'Select Bicycles' }).check()
    await hers.getByRole('button', { name: 'Select all that match' }).click()
    await hers.getByText('All projects that match').waitFor()
    await database.query(
      `update control.sessions set second_factor_at = second_factor_at - interval '1 hour' where user_id = $1`,
      [grace.id],
    )
    await hers.getByRole('button', { name: 'Change plan', exact: true }).click()
    await dialog.getByRole('combobox', { name: 'Plan', exact: true }).click()
    await hers.getByRole('option', { name: 'Business' }).click()
    await dialog.getByText('Projects changed: 2, unchanged: 0, refused: 0.').waitFor()
    await confirm(hers, 'Change plan', 'A better offer')
    await hers
      .getByText(/This change requires two-factor authentication within the last 10 minutes/)
      .waitFor()
    assert.deepEqual(await findings(hers), [])
    await picture(hers, 'bulk-sign-in-again')
    // A code is valid once.
    await signIn(hers, grace, 30_000)
    await hers.getByText(/You have signed in again\. Nothing was changed\./).waitFor()
    await picture(hers, 'bulk-signed-in-again')
    await dialog.getByRole('button', { name: 'Change plan', exact: true }).click()
    await hers.getByRole('heading', { name: 'Change the plan override of 2 projects', level: 1 }).waitFor()
    await hers.getByText('2 of 2 projects done').waitFor()
    await hers.getByText('Locked: no').waitFor()
    await hers.getByText('Business', { exact: true }).waitFor()
    assert.equal((await shown(bicycles.id))['admin_plan_id'], otherPlanId)
    assert.equal((await shown(acme.id))['admin_plan_id'], null)
  })
})

describe('a bulk action', () => {
  /** Not performed by the worker of the session, because it is stopped. */
  async function stopped(): Promise<string> {
    const [row] = await database.query<{ id: string }>(
      `with bulk as (
         insert into control.bulk_actions (id, operation, filter, body, reason, started_by, request_id, matched, changed,
                                           refused, stopped_at, stopped_because)
         values (postern.uuid7(postern.now()), 'interventions.create', '{"max_score": 20}',
                 '{"kind": "warn", "public_note": "Clean up your list."}', 'Many bounces', $1, 'r', 3, 1, 1,
                 postern.now(), 'rights') returning id)
       insert into control.bulk_items (bulk_id, project_id, state, error, message)
       select bulk.id, item.* from bulk, (values ($2::bigint, 'changed', null, null),
         ($3, 'refused', 'limit_exceeded', 'The project has 20 interventions in force. End one of them first.'),
         ($4, 'pending', null, null)) as item returning bulk_id as id`,
      [ada.id, acme.id, projects.at(-1)?.id, bicycles.id],
    )
    return row?.id ?? assert.fail()
  }

  it('shows why it stopped and what was refused, and is resumed', async () => {
    const id = await stopped()
    await page.goto(`/console/bulk/${id}`)
    await heading('Start a warning for 3 projects').waitFor()
    await page.getByText('Stopped after 2 of 3').waitFor()
    await page.getByText(/may no longer perform the operation/).waitFor()
    const refused = page.getByRole('table', { name: 'Refused projects' })
    await refused.getByRole('row', { name: /The project has 20 interventions in force/ }).waitFor()
    await staysText(page)
    await checkScreens(session, 'bulk-stopped', `/console/bulk/${id}`, (window) =>
      window.getByText('Stopped after 2 of 3').waitFor(),
    )
    await button('Resume').click()
    await dialogOf(page).getByText('Projects that are left: 1.').waitFor()
    await confirm(page, 'Resume', 'The right is back')
    await page.getByText('3 of 3 projects done').waitFor()
    await audited(admin, bicycles.id, 'interventions.create', 'Many bounces')
  })

  it('is in the list', async () => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Bulk actions' }).click()
    await heading('Bulk actions').waitFor()
    await page.getByRole('row', { name: /Start a warning for 3 projects finished/ }).waitFor()
    await checkScreens(session, 'bulk-list', '/console/bulk', (window) =>
      window.getByRole('row', { name: /Lock 2 projects/ }).waitFor(),
    )
  })
})
