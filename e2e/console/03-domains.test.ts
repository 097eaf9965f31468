import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { startDns } from '../../server/src/testing/peers/dns.ts'
import { startSesPeer } from '../../server/src/testing/peers/ses-peer.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

/** Domains from creation to deletion, with a real DNS server and a simulated Amazon SES. */
const [dns, ses] = await Promise.all([startDns(), startSesPeer()])
const session = await openAdminSession({
  POSTERN_DNS_SERVERS: dns.server,
  ...ses.settings,
  AWS_ACCESS_KEY_ID: process.env['AWS_ACCESS_KEY_ID'] ?? '',
  AWS_SECRET_ACCESS_KEY: process.env['AWS_SECRET_ACCESS_KEY'] ?? '',
})
const { admin, browser, ada } = session

interface Domain {
  id: number
  name: string
  mta_provider: string
  status: string
  identity: { id: number; state: string }
  dns_records: { purpose: string; type: string; name: string; value: string }[]
}
interface Route {
  id: number
  address: string | null
}

const markup = '<img src=x onerror=document.title="owned">'
const { id: planId } = await makePlan(admin, { max_domains: 1 })
const { id: projectId } = await makeProject(admin, ada.id, planId, 'Shop')
const api = `/admin/projects/${projectId}`
const address = `/console/projects/${projectId}/domains`
const domains = async () => (await body<{ data: Domain[] }>(200, admin.get(`${api}/domains`))).data
const domainCalled = async (name: string) => {
  const found = (await domains()).find((domain) => domain.name === name)
  assert.ok(found, `there is a domain ${name}`)
  return found
}
const routes = async () =>
  Object.fromEntries(
    (await body<{ data: Route[] }>(200, admin.get(`${api}/routing`))).data.map((route) => [
      route.id,
      route.address,
    ]),
  )
const addRoute = async (domain_id: number, local: string | null, name: string) =>
  (
    await body<Route>(
      201,
      admin.post(`${api}/routing`, {
        domain_id,
        match: local === null ? 'catch_all' : 'address',
        address: local && `${local}@${name}`,
        action: 'reject',
        endpoint_id: null,
        forward_to: null,
      }),
    )
  ).id

const page = await browser.enter(ada)
const dialog = dialogOf(page)
const records = dialog.getByRole('region', { name: 'DNS records' })
const clipboard = () => page.evaluate('navigator.clipboard.readText()')
const open = async (name: string) => {
  await page.goto(`${address}/${(await domainCalled(name)).id}`)
  await page.getByRole('heading', { name, exact: true }).waitFor()
}
const more = async (item: string) => {
  await page.getByRole('button', { name: 'More… for this domain' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}
/**
 * Uses the keyboard: the button moves when the provider's records arrive, and a pointer that was pressed on the button
 * would be released elsewhere.
 */
const closeResult = async () => {
  await dialog.getByRole('button', { name: 'Close' }).filter({ hasText: 'Close' }).press('Enter')
  await dialog.waitFor({ state: 'hidden' })
}

describe('the domains of a project', () => {
  it('start with an empty page that explains the next step', async () => {
    await page.goto(address)
    await page.getByText('No domains yet').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domains-empty')
  })

  it('are added in a dialog that rejects an invalid name and shows markup as text', async () => {
    await page.getByRole('button', { name: 'New domain' }).click()
    await dialog.getByLabel('Name').fill(markup)
    await dialog.getByText('This change is not allowed').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Add domain' }).isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await staysText(page)

    await dialog.getByLabel('Name').fill('shop.example.org')
    await dialog.getByText('The project will have 1 of').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-new')
    await confirm(page, 'Add domain', markup)
    await records.waitFor()
    assert.equal((await domainCalled('shop.example.org')).mta_provider, 'service')
    await audited(admin, projectId, 'domains.create', markup)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-new-records')
  })

  it('offer their records one by one and as a zone file, and are verified while the page is open', async () => {
    const { id, dns_records } = await domainCalled('shop.example.org')
    for (const { type, name, value } of dns_records) {
      const row = dialog.getByRole('row').filter({ hasText: name }).filter({ hasText: type })
      await row
        .getByRole('button', { name: /^Copy name/ })
        .first()
        .click()
      assert.equal(await clipboard(), name)
      await row
        .getByRole('button', { name: /^Copy value/ })
        .first()
        .click()
      assert.equal(await clipboard(), value)
    }
    await dialog.getByRole('button', { name: 'Copy as zone file' }).click()
    await dialog.getByRole('button', { name: 'Copied' }).first().waitFor()
    const zone = String(await clipboard())
    assert.match(zone, /^_postern\.shop\.example\.org\. 3600 IN TXT "postern-verification=/m)
    assert.match(zone, /^\S+\._domainkey\.shop\.example\.org\. 3600 IN TXT "[^"]{255}" "[^"]+"$/m)
    assert.match(zone, /^shop\.example\.org\. 3600 IN MX 10 mx\.postern\.example\.net\.$/m)
    await closeResult()
    await page.waitForURL(`**${address}/${id}`)
    await page.getByText('Waiting for DNS records').waitFor()
    await page.getByRole('button', { name: 'Check now' }).click()
    await confirm(page, 'Check now')
    await audited(admin, projectId, 'domains.verify', null)
    await page.getByText('Missing:').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-pending')

    await dns.setZone('.', zone)
    await page.getByRole('button', { name: 'Check now' }).click()
    await confirm(page, 'Check now', 'They say that they are there')
    await audited(admin, projectId, 'domains.verify', 'They say that they are there')
    await page.getByRole('status').getByText('Verified', { exact: true }).waitFor()
    assert.equal((await domainCalled('shop.example.org')).status, 'verified')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-verified')
  })

  it('can exceed the plan’s limit with a reason; SES domains show their records once SES returns them', async () => {
    await page.goto(address)
    await page.getByRole('button', { name: 'New domain' }).click()
    await dialog.getByLabel('Name').fill('news.example.org')
    await dialog.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Amazon SES' }).click()
    await dialog.getByText(/This exceeds the limit max_domains/).waitFor()
    await dialog.getByText('Enter a reason.', { exact: true }).waitFor()
    await picture(page, 'domain-new-past-limit')
    // A recent reason is suggested, and shown as text.
    await dialog.getByRole('button', { name: markup }).waitFor()
    await staysText(page)
    await confirm(page, 'Add domain', 'They pay for it from next month')
    const entry = await audited(admin, projectId, 'domains.create', 'They pay for it from next month')
    assert.deepEqual(entry.limit_exception, { limit: 'max_domains', value: 1, count: 2 })
    await dialog.getByText('._domainkey.news.example.org').nth(2).waitFor()
    await closeResult()
    await page.goto(address)
    await page.getByRole('link', { name: 'news.example.org' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domains')
  })

  it('get a new DKIM key in addition to the old one', async () => {
    await open('shop.example.org')
    await more('Rotate DKIM key')
    await dialog.getByText('Leave the current record published').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Rotate DKIM key' }).isDisabled(), true)
    assert.deepEqual(await findings(page), [])
    await confirm(page, 'Rotate DKIM key', 'Yearly rotation')
    await dialog.getByText('._domainkey.shop.example.org').nth(1).waitFor()
    await audited(admin, projectId, 'domains.rotate', 'Yearly rotation')
    const { status, dns_records } = await domainCalled('shop.example.org')
    assert.equal(status, 'verified')
    assert.equal(dns_records.filter(({ purpose }) => purpose === 'dkim').length, 2)
    await closeResult()
  })
})

describe('editing a domain', () => {
  it('keeps the local parts of its address routes and shows the new records, using only the keyboard', async () => {
    const { id, identity } = await domainCalled('shop.example.org')
    const info = await addRoute(id, 'info', 'shop.example.org')
    const help = await addRoute(id, 'help', 'shop.example.org')
    const rest = await addRoute(id, null, 'shop.example.org')
    await open('shop.example.org')
    await page.getByRole('button', { name: 'Edit domain' }).focus()
    await page.keyboard.press('Enter')
    await dialog.getByLabel('Name').and(page.locator(':focus')).waitFor()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('store.example.org')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-edit-1')
    await page.keyboard.press('Enter')
    await dialog.getByRole('cell', { name: 'info@store.example.org' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-edit-2')
    await page.keyboard.press('Enter')
    await dialog.getByText(`Route ${info} receives mail for info@store.example.org`).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-edit-3')
    // The edit stops a verified domain from sending, so the console requires a reason.
    await dialog.getByText('Enter a reason.').waitFor()
    await page.keyboard.type('They are called Store now')
    await dialog.getByRole('button', { name: 'Rename and re-verify' }).and(page.locator(':enabled')).waitFor()
    await page.keyboard.press('Enter')
    await dialog.getByText('Publish these DNS records').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-edit-records')
    await dialog.getByRole('button', { name: 'Close' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('heading', { name: 'store.example.org' }).waitFor()

    const entry = await audited(admin, projectId, 'domains.edit', 'They are called Store now')
    assert.equal(entry.related.length, 2)
    const after = await domainCalled('store.example.org')
    assert.equal(after.status, 'pending')
    assert.notEqual(after.identity.id, identity.id)
    assert.deepEqual(await routes(), {
      [info]: 'info@store.example.org',
      [help]: 'help@store.example.org',
      [rest]: null,
    })
  })

  it('accepts a new address for each route, and shows an edit conflict', async () => {
    const { id } = await domainCalled('store.example.org')
    const before = await routes()
    await page.getByRole('button', { name: 'Edit domain' }).click()
    // An internationalised name: the addresses are shown in their DNS form (IDNA).
    await dialog.getByLabel('Name').fill('müller.example')
    await dialog.getByRole('button', { name: 'Next' }).click()
    await dialog.getByLabel('Enter new addresses').check()
    await dialog.getByLabel('New address for info@store.example.org').fill('hello')
    await dialog.getByLabel('New address for help@store.example.org').fill('support@xn--mller-kva.example')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-edit-2-replace')

    await dialog.getByRole('button', { name: 'Next' }).click()
    await dialog.getByText('receives mail for hello@xn--mller-kva.example').waitFor()

    // Grace edits first.
    await body(200, admin.patch(`${api}/domains/${id}`, { mta_provider: 'service' }))
    await confirm(page, 'Rename and re-verify', 'A new name again')
    await dialog.getByText('This was changed after you opened it').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'domain-edit-conflict')
    await dialog.getByRole('button', { name: 'Continue with my edits' }).click()
    await dialog.getByText('receives mail for hello@xn--mller-kva.example').waitFor()
    await confirm(page, 'Rename and re-verify')
    await dialog.getByText('_postern.xn--mller-kva.example').first().waitFor()
    await closeResult()
    await audited(admin, projectId, 'domains.edit', 'A new name again')
    const moved = Object.entries(before).map(([route, was]) => [
      route,
      was && (was.startsWith('info') ? 'hello@xn--mller-kva.example' : 'support@xn--mller-kva.example'),
    ])
    assert.deepEqual(await routes(), Object.fromEntries(moved))
  })

  it('moves a domain to another provider and keeps its routes', async () => {
    const before = await routes()
    await open('xn--mller-kva.example')
    await page.getByRole('button', { name: 'Edit domain' }).click()
    await dialog.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Amazon SES' }).click()
    await dialog.getByRole('button', { name: 'Next' }).click()
    await dialog.getByText('The name does not change').waitFor()
    await dialog.getByRole('button', { name: 'Next' }).click()
    await confirm(page, 'Change provider and re-verify', 'Out of our own addresses')
    await dialog.getByText('._domainkey.xn--mller-kva.example').nth(2).waitFor()
    await closeResult()
    await audited(admin, projectId, 'domains.edit', 'Out of our own addresses')
    assert.equal((await domainCalled('xn--mller-kva.example')).mta_provider, 'ses')
    assert.deepEqual(await routes(), before)
  })

  it('re-registers an identity that the provider lost', async () => {
    const { identity } = await domainCalled('xn--mller-kva.example')
    await more('Re-register')
    await dialog.getByText('this only registers the domain again and resets its verification').waitFor()
    await confirm(page, 'Re-register', 'Somebody deleted it at Amazon')
    await records.waitFor()
    await closeResult()
    await audited(admin, projectId, 'domains.edit', 'Somebody deleted it at Amazon')
    assert.notEqual((await domainCalled('xn--mller-kva.example')).identity.id, identity.id)
  })
})

describe('deleting a domain', () => {
  it('is rejected while routes use it', async () => {
    await more('Delete domain')
    await dialog.getByText('This change is not allowed').waitFor()
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('They gave it up')
    assert.equal(await dialog.getByRole('button', { name: 'Delete domain' }).isDisabled(), true)
    await picture(page, 'domain-delete-refused')
    await page.keyboard.press('Escape')
    assert.equal((await domains()).length, 2)
  })

  it('requires a reason, and returns to the list', async () => {
    await open('news.example.org')
    await more('Delete domain')
    await dialog.getByText('Enter a reason.', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await confirm(page, 'Delete domain', 'They gave it up')
    await audited(admin, projectId, 'domains.delete', 'They gave it up')
    await page.waitForURL(`**${address}`)
    await eventually(
      'the deleted domain is gone from the list',
      async () => (await page.getByRole('link', { name: 'news.example.org' }).count()) === 0,
    )
    assert.deepEqual(
      (await domains()).map(({ name }) => name),
      ['xn--mller-kva.example'],
    )
    await staysText(page)
  })
})

describe('every screen', () => {
  it('fits, wide and narrow, light and dark', async () => {
    const { id, name } = await domainCalled('xn--mller-kva.example')
    await checkScreens(session, 'domains', address, (other) => other.getByRole('link', { name }).waitFor())
    await checkScreens(session, 'domain', `${address}/${id}`, (other) => other.getByRole('table').waitFor())
  })

  it('has a dialog that fits a phone', async () => {
    const { id } = await domainCalled('xn--mller-kva.example')
    const phone = await browser.enter(ada, { width: 390, scheme: 'dark' })
    await phone.goto(`${address}/${id}`)
    await phone.getByRole('button', { name: 'Edit domain' }).click()
    await dialogOf(phone).getByLabel('Name').fill('store.example')
    await dialogOf(phone).getByRole('button', { name: 'Next' }).click()
    await dialogOf(phone).getByLabel('Enter new addresses').check()
    assert.deepEqual(await findings(phone), [])
    await picture(phone, 'domain-edit-390-dark')
  })
})
