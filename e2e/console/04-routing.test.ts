import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, makePlan } from '../stage.ts'
import { openDesk } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { looks } from './visual-checks.ts'

/** Where mail for a project's domains goes: asked, made, changed and ended. */
const desk = await openDesk()
const { admin, browser, ada } = desk

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
    url: `${desk.receiver.url}/orders`,
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
const tester = page.getByRole('region', { name: 'Tester' })
const list = page.getByRole('table', { name: 'Routes' })

describe('the routes of a project', () => {
  it('are none at first, and the page says what that means', async () => {
    await page.goto(address)
    await page.getByText('No route yet').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'routing-empty')
  })

  it('give the mail of one address to an endpoint', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await choose('Domain', 'shop.example.org')
    // The whole address is pasted; what the field has beside it is not said twice.
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('Orders@shop.example.org')
    assert.equal(await dialog.getByRole('textbox', { name: 'Address', exact: true }).inputValue(), 'Orders')
    await choose('Endpoint', `Orders ${markup}`)
    await dialog.getByText('From now on mail for orders@shop.example.org goes to endpoint').waitFor()
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

  it('take the rest of a domain, whatever was filled in before', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await choose('Domain', 'shop.example.org')
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('nobody')
    await choose('Endpoint', `Orders ${markup}`)
    await dialog.getByLabel('Every address of the domain').check()
    await choose('What becomes of it', 'Forward to an address')
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
    await list.getByRole('button', { name: 'all other mail of shop.example.org', exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'routing')
  })

  it('that forward wait for their target, which is asked again from the list', async () => {
    const row = list.getByRole('row').filter({ hasText: 'all other mail of shop.example.org' })
    await row.getByText('not confirmed').waitFor()
    await row.getByText('Put off until ada@example.com has confirmed').waitFor()
    await row.getByRole('button', { name: 'More for all other mail of shop.example.org' }).click()
    await page.getByRole('menuitem', { name: 'Send confirmation link again' }).click()
    await dialog.getByText('A new link is mailed to ada@example.com').waitFor()
    assert.deepEqual(await findings(page), [])
    await confirm(page, 'Send link', 'They deleted the mail')
    await audited(admin, projectId, 'routing.request-confirmation', 'They deleted the mail')
  })

  it('are changed whole, also after somebody else was faster', async () => {
    const row = list.getByRole('button', { name: 'orders@shop.example.org', exact: true })
    await row.click()
    await choose('What becomes of it', 'Refuse, and tell the sender')
    await dialog.getByText('is refused, and the sender is told').waitFor()
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
    await dialog.getByText('This was changed meanwhile').waitFor()
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('button', { name: 'Go on from there' }).click()
    await dialog.getByText('It is switched off and takes no mail.').waitFor()
    assert.equal(await dialog.getByRole('switch', { name: 'Active' }).isChecked(), false)
    await dialog.getByRole('switch', { name: 'Active' }).click()
    await choose('Domain', 'news.example.org')
    await dialog.getByText('mail for orders@news.example.org is refused').waitFor()
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

  it('are not made twice: what the server refuses is said', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await choose('Domain', 'news.example.org')
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('orders')
    await choose('What becomes of it', 'Accept and throw away')
    await dialog.getByText('The server would refuse this').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Create route' }).isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('textbox', { name: 'Address', exact: true }).fill('noise')
    await dialog.getByText('no sender is told').waitFor()
    await confirm(page, 'Create route', 'Nobody reads it')
    await audited(admin, projectId, 'routing.create', 'Nobody reads it')
  })
})

describe('the tester', () => {
  it('tells which route takes an address, by keyboard, and keeps the question in the address', async () => {
    await page.getByLabel('Which route takes this address?').focus()
    await page.keyboard.type('orders+2026@news.example.org')
    await page.keyboard.press('Enter')
    await tester.getByText('it is refused, and the sender is told').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('address'), 'orders+2026@news.example.org')
    const row = list.getByRole('row').filter({ hasText: 'takes it' })
    assert.match((await row.textContent()) ?? '', /^orders@news\.example\.org/)
    assert.equal(await row.count(), 1)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'routing-tester')
    // The route in the answer opens.
    await tester.getByRole('button', { name: 'orders@news.example.org' }).click()
    await dialog.getByText('Edit the route for orders@news.example.org').waitFor()
    await page.keyboard.press('Escape')
  })

  it('can be shared by its address, and says what stands in the way', async () => {
    await page.goto(`${address}?address=anybody@shop.example.org`)
    await tester.getByText('sends nothing before it is verified').waitFor()
    assert.equal(
      await page.getByLabel('Which route takes this address?').inputValue(),
      'anybody@shop.example.org',
    )
    await list.getByText('takes it').waitFor()
    await tester.getByRole('link', { name: 'shop.example.org' }).click()
    await page.waitForURL(`**/projects/${projectId}/domains/${shop}`)
  })

  it('says what is no address, and shows it as text', async () => {
    await page.goto(address)
    await page.getByLabel('Which route takes this address?').fill(markup)
    await page.getByRole('button', { name: 'Find' }).click()
    await tester.getByText('must be ASCII without spaces').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByLabel('Which route takes this address?').fill('ada@elsewhere.example')
    await page.keyboard.press('Enter')
    await tester.getByText('This project has no domain elsewhere.example.').waitFor()
    await staysText(page)
  })
})

describe('the end of a route', () => {
  it('comes for a reason, and says who takes its mail then', async () => {
    await list.getByRole('button', { name: 'More for noise@news.example.org' }).click()
    await page.getByRole('menuitem', { name: 'Delete route' }).click()
    await dialog.getByText('No route takes mail for noise@news.example.org any more').waitFor()
    await dialog.getByText('A reason is needed.', { exact: true }).waitFor()
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
  it('is whole, wide and narrow, light and dark', async () => {
    await looks(desk, 'routing', `${address}?address=anybody@shop.example.org`, (other) =>
      other.getByText('takes it', { exact: true }).waitFor(),
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
