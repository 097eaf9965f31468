import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

/** Tests, creates, edits and deletes inbound routes. */
const session = await openAdminSession()
const { admin, browser, ada } = session

interface Route {
  id: number
  domain_id: number
  match: string
  address: string | null
  action: string
  endpoint_id: number | null
  forward_to: string | null
  is_active: boolean
}

const markup = '<img src=x onerror=document.title="owned">'
const { id: planId } = await makePlan(admin)
const { id: projectId } = await makeProject(admin, ada.id, planId, `Shop ${markup}`)
const api = `/admin/projects/${projectId}`
const address = `/console/projects/${projectId}/routing`
const addDomain = async (name: string) =>
  (await body<{ id: number }>(201, admin.post(`${api}/domains`, { name, mta_provider: 'service' }))).id
const shop = await addDomain('shop.example.org')
const news = await addDomain('news.example.org')
const { resource: endpoint } = await body<{ resource: { id: number } }>(
  201,
  admin.post(`${api}/endpoints`, {
    name: `Orders ${markup}`,
    url: `${session.receiver.url}/orders`,
    events: ['inbound.received'],
    is_active: true,
  }),
)
const routes = async () => (await body<{ data: Route[] }>(200, admin.get(`${api}/routing`))).data
const configurations = async () =>
  (await routes()).map(({ domain_id, match, address: of, action, endpoint_id, forward_to, is_active }) => ({
    ...{ domain_id, match, address: of, action, endpoint_id, forward_to, is_active },
  }))

const page = await browser.enter(ada)
const dialog = dialogOf(page)
const choose = async (label: string, option: string) => {
  await dialog.getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option }).click()
}
const tester = page.getByRole('region', { name: 'Route tester' })
const list = page.getByRole('table', { name: 'Routes' })

describe('the routes of a project', () => {
  it('start with an empty page that explains the effect', async () => {
    await page.goto(address)
    await page.getByText('No routes yet').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'routing-empty')
  })

  it('deliver one address’s mail to an endpoint', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await choose('Domain', 'shop.example.org')
    // A pasted full address is reduced to its local part.
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('Orders@shop.example.org')
    assert.equal(await dialog.getByRole('textbox', { name: 'Address', exact: true }).inputValue(), 'Orders')
    await choose('Endpoint', `Orders ${markup}`)
    await dialog.getByText('Mail for orders@shop.example.org is delivered to endpoint').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'route-new')
    await confirm(page, 'Create route', 'They asked for it')
    await audited(admin, projectId, 'routing.create', 'They asked for it')
    await list.getByRole('link', { name: `Orders ${markup}` }).waitFor()
    await staysText(page)
    assert.deepEqual(await configurations(), [
      {
        domain_id: shop,
        match: 'address',
        address: 'orders@shop.example.org',
        action: 'endpoint',
        endpoint_id: endpoint.id,
        forward_to: null,
        is_active: true,
      },
    ])
  })

  it('match all of a domain’s other addresses, whatever was entered before', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await choose('Domain', 'shop.example.org')
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('nobody')
    await choose('Endpoint', `Orders ${markup}`)
    await dialog.getByLabel('All other addresses in the domain').check()
    await choose('Action', 'Forward to an address')
    await dialog.getByLabel('Forward to').fill('ada@example.com')
    await dialog.getByText('is forwarded to ada@example.com').waitFor()
    assert.equal(await dialog.getByRole('textbox', { name: 'Address', exact: true }).count(), 0)
    await confirm(page, 'Create route')
    await audited(admin, projectId, 'routing.create', null)
    assert.deepEqual((await configurations())[0], {
      domain_id: shop,
      match: 'catch_all',
      address: null,
      action: 'forward',
      endpoint_id: null,
      forward_to: 'ada@example.com',
      is_active: true,
    })
    await list.getByRole('button', { name: 'all other mail to shop.example.org', exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'routing')
  })

  it('await confirmation if they forward, and the confirmation can be requested again from the list', async () => {
    const row = list.getByRole('row').filter({ hasText: 'all other mail to shop.example.org' })
    await row.getByText('not confirmed').waitFor()
    await row.getByText('Deferred until ada@example.com confirms').waitFor()
    await row.getByRole('button', { name: 'More for all other mail to shop.example.org' }).click()
    await page.getByRole('menuitem', { name: 'Resend confirmation link' }).click()
    await dialog.getByText('A new confirmation link is sent to ada@example.com').waitFor()
    assert.deepEqual(await findings(page), [])
    await confirm(page, 'Resend link', 'They deleted the mail')
    await audited(admin, projectId, 'routing.request-confirmation', 'They deleted the mail')
  })

  it('are edited as a whole, even after an edit conflict', async () => {
    const row = list.getByRole('button', { name: 'orders@shop.example.org', exact: true })
    await row.click()
    await choose('Action', 'Reject')
    await dialog.getByText('is rejected, and the sender gets a bounce').waitFor()
    const [, before] = await routes()
    assert.ok(before)
    const { id, domain_id, match, address: of, action, endpoint_id, forward_to } = before
    await body(
      200,
      admin.patch(`${api}/routing/${id}`, {
        ...{ domain_id, match, address: of, action, endpoint_id, forward_to },
        is_active: false,
      }),
    )
    await confirm(page, 'Save route', 'The shop is closed')
    await dialog.getByText('This was changed after you opened it').waitFor()
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('button', { name: 'Continue with my edits' }).click()
    await dialog.getByText('The route is inactive and receives no mail.').waitFor()
    assert.equal(await dialog.getByRole('switch', { name: 'Active' }).isChecked(), false)
    await dialog.getByRole('switch', { name: 'Active' }).click()
    await choose('Domain', 'news.example.org')
    await dialog.getByText('mail for orders@news.example.org is rejected').waitFor()
    await confirm(page, 'Save route')
    await audited(admin, projectId, 'routing.edit', 'The shop is closed')
    assert.deepEqual((await configurations())[1], {
      domain_id: news,
      match: 'address',
      address: 'orders@news.example.org',
      action: 'reject',
      endpoint_id: null,
      forward_to: null,
      is_active: true,
    })
  })

  it('are not created twice: the dialog shows why the request was rejected', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await choose('Domain', 'news.example.org')
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('orders')
    await choose('Action', 'Accept and discard')
    await dialog.getByText('This change is not allowed').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Create route' }).isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('noise')
    await dialog.getByText('senders are not notified').waitFor()
    await confirm(page, 'Create route', 'Nobody reads it')
    await audited(admin, projectId, 'routing.create', 'Nobody reads it')
  })
})

describe('the tester', () => {
  it('finds the route for an address, by keyboard, and keeps it in the address bar', async () => {
    await page.getByLabel('Which route matches this address?').focus()
    await page.keyboard.type('orders+2026@news.example.org')
    await page.keyboard.press('Enter')
    await tester.getByText('rejects it, and the sender gets an error').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('address'), 'orders+2026@news.example.org')
    const row = list.getByRole('row').filter({ hasText: 'matches' })
    assert.match((await row.textContent()) ?? '', /^orders@news\.example\.org/)
    assert.equal(await row.count(), 1)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'routing-tester')
    // Opens the matching route.
    await tester.getByRole('button', { name: 'orders@news.example.org' }).click()
    await dialog.getByText('Edit route for orders@news.example.org').waitFor()
    await page.keyboard.press('Escape')
  })

  it('can be shared by its URL, and explains why mail is not delivered', async () => {
    await page.goto(`${address}?address=anybody@shop.example.org`)
    await tester.getByText('cannot send until it is verified').waitFor()
    assert.equal(
      await page.getByLabel('Which route matches this address?').inputValue(),
      'anybody@shop.example.org',
    )
    await list.getByText('matches').waitFor()
    await tester.getByRole('link', { name: 'shop.example.org' }).click()
    await page.waitForURL(`**/projects/${projectId}/domains/${shop}`)
  })

  it('rejects an invalid address, and shows it as text', async () => {
    await page.goto(address)
    await page.getByLabel('Which route matches this address?').fill(markup)
    await page.getByRole('button', { name: 'Find' }).click()
    await tester.getByText('must be ASCII without spaces').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByLabel('Which route matches this address?').fill('ada@elsewhere.example')
    await page.keyboard.press('Enter')
    await tester.getByText('This project has no domain elsewhere.example.').waitFor()
    await staysText(page)
  })
})

describe('deleting a route', () => {
  it('requires a reason, and shows which route will match instead', async () => {
    await list.getByRole('button', { name: 'More for noise@news.example.org' }).click()
    await page.getByRole('menuitem', { name: 'Delete route' }).click()
    await dialog.getByText('No other route accepts mail for noise@news.example.org').waitFor()
    await dialog.getByText('Enter a reason.', { exact: true }).waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Delete route' }).isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'route-delete')
    await confirm(page, 'Delete route', 'They changed their mind')
    await audited(admin, projectId, 'routing.delete', 'They changed their mind')
    assert.equal((await routes()).length, 2)
    await list
      .getByRole('button', { name: 'noise@news.example.org', exact: true })
      .waitFor({ state: 'hidden' })
  })
})

describe('every screen', () => {
  it('fits, wide and narrow, light and dark', async () => {
    await checkScreens(session, 'routing', `${address}?address=anybody@shop.example.org`, (other) =>
      other.getByText('matches', { exact: true }).waitFor(),
    )
  })

  it('has a dialog that fits a phone', async () => {
    const phone = await browser.enter(ada, { width: 390, scheme: 'dark' })
    await phone.goto(address)
    await phone.getByRole('button', { name: 'New route' }).click()
    await dialogOf(phone).getByRole('textbox', { name: 'Address', exact: true }).waitFor()
    assert.deepEqual(await findings(phone), [])
    await picture(phone, 'route-new-390-dark')
  })
})
