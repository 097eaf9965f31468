import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const page = await session.browser.enter(session.ada)

/** Markup in a name. */
const hostile = '<img src=x onerror="document.title=\'owned\'">'

interface Plan {
  id: number
  name: string
  price: number
  max_domains: number
  max_mails_per_month: number
  support_level: string
  billing_product_id: string | null
  is_active: boolean
}

interface AuditRow {
  operation: string
  reason: string | null
}

const plans = async () => (await body<{ data: Plan[] }>(200, session.admin.get('/admin/plans'))).data
const lastAudit = async (operation: string) =>
  (await body<{ data: AuditRow[] }>(200, session.admin.get(`/admin/audit?operation=${operation}`))).data[0]
const userOf = async (email: string) =>
  (
    await body<{ data: { id: number; role: string; is_active: boolean }[] }>(
      200,
      session.admin.get(`/admin/users?q=${encodeURIComponent(email)}`),
    )
  ).data[0]

const dialog = page.getByRole('dialog')

/** Chooses an option in a select field. */
async function choose(label: string, option: string, within: ReturnType<Page['getByRole']>): Promise<void> {
  await within.getByLabel(label, { exact: true }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

/** Waits until the preview has loaded and the button is enabled. */
const ready = (button: string) => dialog.getByRole('button', { name: button, disabled: false }).waitFor()
const table = (window: Page) => window.getByRole('table').waitFor()

describe('plans', () => {
  it('start with an empty page', async () => {
    await page.goto('/console/plans')
    await page.getByText('No plans', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'plans-empty')
  })

  it('are created by a form with a preview', async () => {
    await page.getByRole('button', { name: 'New plan' }).click()
    await dialog.getByLabel('Name').fill('Starter')
    await dialog.getByLabel('Description').fill(`For a first product. ${hostile}`)
    await dialog.getByLabel('Domains (maximum)').fill('5')
    await dialog.getByLabel('Members (maximum)').fill('3')
    await dialog.getByLabel('Messages per day (maximum)').fill('5000')
    await dialog.getByLabel('Messages per month (maximum)').fill('50000')
    await dialog.getByLabel('Price').fill('19.5')
    assert.equal(await dialog.getByRole('button', { name: 'Create plan' }).isEnabled(), false)
    await choose('Support', 'Priority', dialog)
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('The new price list')
    await dialog.getByRole('cell', { name: 'Starter' }).waitFor()
    await ready('Create plan')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'plan-create')
    await dialog.getByRole('textbox', { name: 'Reason' }).press('Enter')
    await page.getByRole('button', { name: 'Starter' }).waitFor()
    const [made] = await plans()
    assert.deepEqual(
      [made?.name, made?.price, made?.max_domains, made?.max_mails_per_month, made?.support_level],
      ['Starter', 19.5, 5, 50_000, 'priority'],
    )
    assert.equal(made?.billing_product_id, null)
    assert.equal((await lastAudit('plans.create'))?.reason, 'The new price list')
  })

  it('show markup as text', async () => {
    await page.getByText(hostile).waitFor()
    assert.equal(await page.title(), 'Plans · Postern')
  })

  it('show how many projects an edit affects, and send only edited fields', async () => {
    const [starter] = await plans()
    for (const name of ['Acme', 'Birch', 'Cedar']) {
      const project = { name, user_id: session.ada.id, plan_id: starter?.id }
      await body(201, session.admin.post('/admin/projects', project))
    }
    await page.getByRole('button', { name: 'Starter' }).click()
    await dialog.getByText('No changes.').first().waitFor()
    await dialog.getByLabel('Messages per month (maximum)').fill('80000')
    await dialog.getByText('Applies immediately to the projects on this plan: 3.').waitFor()
    await dialog.getByRole('cell', { name: '80000' }).waitFor()
    await ready('Save plan')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'plan-edit')
    // Another administrator changes the price: this edit must not revert that change.
    await body(200, session.admin.patch(`/admin/plans/${starter?.id}`, { price: 25 }))
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Asked for by sales')
    await dialog.getByRole('button', { name: 'Save plan' }).click()
    await dialog.getByText('This was changed after you opened it').waitFor()
    await dialog.getByRole('rowheader', { name: 'Price' }).waitFor()
    await picture(page, 'plan-conflict')
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('button', { name: 'Continue with my edits' }).click()
    await dialog.getByRole('button', { name: 'Save plan' }).click()
    await dialog.waitFor({ state: 'hidden' })
    const [after] = await plans()
    assert.deepEqual([after?.max_mails_per_month, after?.price], [80_000, 25])
    assert.equal((await lastAudit('plans.edit'))?.reason, 'Asked for by sales')
  })

  it('are made unavailable, and filtered by availability', async () => {
    await makePlan(session.admin, { name: 'Business' })
    await page.goto('/console/plans')
    await page.getByRole('button', { name: 'Starter' }).click()
    await choose('Availability', 'Not available to new projects', dialog)
    await dialog.getByText('The plan can no longer be assigned to a project.').waitFor()
    await dialog.getByRole('button', { name: 'Save plan' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('inactive', { exact: true }).waitFor()
    await page.goto('/console/plans?is_active=false')
    await page.getByRole('button', { name: 'Starter' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Business' }).count(), 0)
    await page.goto('/console/plans')
    await checkScreens(session, 'plans', '/console/plans', table)
  })

  it('link to the projects that use them', async () => {
    await page.getByRole('link', { name: 'Projects on the plan Starter' }).click()
    await page.getByRole('link', { name: 'Acme' }).waitFor()
    assert.match(page.url(), /\/projects\?plan_id=\d+$/)
  })
})

describe('users', () => {
  before(async () => {
    await session.database.query(
      `insert into control.users (email, name)
       select 'customer' || n || '@example.net', 'Customer ' || n from generate_series(1, 60) as n`,
    )
    await session.database.query(`insert into control.users (email, name) values ('eve@example.net', $1)`, [
      hostile,
    ])
  })

  it('are searched while typing, by address and name, with the search in the address bar', async () => {
    await page.goto('/console/users')
    await page.getByRole('button', { name: 'customer60@example.net' }).waitFor()
    await page.getByRole('button', { name: 'Next page' }).waitFor()
    await page.keyboard.type('/eve@', { delay: 5 })
    await page.getByRole('button', { name: 'customer60@example.net' }).waitFor({ state: 'hidden' })
    await page.getByText(hostile).waitFor()
    assert.equal(await page.getByLabel('Search').inputValue(), 'eve@')
    assert.equal(await page.getByRole('row').count(), 2)
    assert.equal(await page.title(), 'Users · Postern')
    assert.equal(new URL(page.url()).searchParams.get('q'), 'eve@')
    await page.getByLabel('Search').fill('nobody at all')
    await page.getByText('No matching users').waitFor()
    await page.getByLabel('Search').fill('')
    await choose('Role', 'Administrator', page.getByRole('search'))
    await page.getByRole('button', { name: 'customer60@example.net' }).waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: session.grace.email }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('role'), 'admin')
    await checkScreens(session, 'users', '/console/users?q=customer1', table)
  })

  it('are blocked from signing in, with a required reason', async () => {
    await page.goto('/console/users?q=eve')
    await page.getByRole('button', { name: 'eve@example.net' }).click()
    await choose('Access', 'Cannot sign in', dialog)
    await dialog.getByText('The user cannot sign in.').waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Save changes' }).isEnabled(), false)
    await dialog.getByRole('textbox', { name: 'Reason' }).fill(`Asked to ${hostile}`)
    await dialog.getByRole('textbox', { name: 'Reason' }).press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('cell', { name: 'cannot sign in' }).waitFor()
    assert.equal((await userOf('eve@example.net'))?.is_active, false)
    assert.equal((await lastAudit('users.edit'))?.reason, `Asked to ${hostile}`)
  })

  it('become administrators, using only the keyboard', async () => {
    await page.goto('/console/users?q=customer7')
    const row = page.getByRole('button', { name: 'customer7@example.net' })
    await row.focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('No changes.').first().waitFor()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('option', { name: 'Administrator' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await dialog.getByText('The user has full access to every project.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'user-edit')
    await dialog.getByRole('textbox', { name: 'Reason' }).focus()
    await page.keyboard.type('Joined the team')
    await ready('Save changes')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    assert.equal((await userOf('customer7@example.net'))?.role, 'admin')
    assert.equal((await lastAudit('users.edit'))?.reason, 'Joined the team')
  })

  it('are signed out of all sessions', async () => {
    const other = await session.browser.enter(session.grace)
    await other.goto('/console/plans')
    await other.getByRole('button', { name: 'Starter' }).waitFor()
    await page.goto('/console/users?role=admin')
    await page.getByRole('button', { name: session.grace.email }).click()
    await dialog.getByLabel('Sign out of all sessions').check()
    await dialog.getByText('Sessions revoked: 1').waitFor()
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Laptop lost')
    await dialog.getByRole('button', { name: 'Save changes' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await other.getByRole('link', { name: 'Users' }).click()
    await other.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    assert.equal((await lastAudit('users.edit'))?.reason, 'Laptop lost')
  })

  it('always include at least one administrator', async () => {
    for (const email of [session.grace.email, 'customer7@example.net']) {
      const { id } = (await userOf(email)) ?? { id: 0 }
      await body(200, session.admin.patch(`/admin/users/${id}`, { role: 'user', reason: 'Only Ada is left' }))
    }
    await page.goto('/console/users?role=admin')
    await page.getByRole('button', { name: session.ada.email }).click()
    await choose('Role', 'User', dialog)
    await dialog.getByText('This change is not allowed').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'user-last-administrator')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
  })

  it('link to their activity', async () => {
    await page.getByRole('link', { name: `Activity of ${session.ada.email}` }).click()
    await page.waitForURL(`**/audit?actor=${session.ada.id}`)
  })
})
