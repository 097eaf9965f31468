import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startDns } from '../../server/src/testing/peers/dns.ts'
import { startSesPeer } from '../../server/src/testing/peers/ses-peer.ts'
import { findings, picture, staysText } from '../console/browser.ts'
import { chooseByKeyboard, dialogOf } from '../console/dialog.ts'
import { takeSecret } from '../console/secret.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { body } from '../stage.ts'
import { openAppSession } from './app-session.ts'

/** Cleo sets up her project: its domains, with a real DNS server and a simulated Amazon SES, its API keys and its members. */
const [dns, ses] = await Promise.all([startDns(), startSesPeer()])
const session = await openAppSession({
  POSTERN_DNS_SERVERS: dns.server,
  ...ses.settings,
  AWS_ACCESS_KEY_ID: process.env['AWS_ACCESS_KEY_ID'] ?? '',
  AWS_SECRET_ACCESS_KEY: process.env['AWS_SECRET_ACCESS_KEY'] ?? '',
})
const { admin, browser, cleo, project } = session
const at = `/app/projects/${project.id}`
const api = `/admin/projects/${project.id}`
const page = await browser.enter(cleo)
const dialog = dialogOf(page)
const clipboard = () => page.evaluate<string>('navigator.clipboard.readText()')
const open = () => browser.enter(cleo)

/** Markup in a name. */
const hostile = `<img src=x onerror="document.title='owned'">`

interface Domain {
  id: number
  name: string
  status: string
  mta_provider: string
  dns_records: { purpose: string; type: string; name: string; value: string }[]
}

const domains = async () => (await body<{ data: Domain[] }>(200, admin.get(`${api}/domains`))).data
const domainCalled = async (name: string): Promise<Domain> => {
  const found = (await domains()).find((domain) => domain.name === name)
  assert.ok(found, `there is a domain ${name}`)
  return found
}

const submit = (button: string) => dialog.getByRole('button', { name: button, exact: true }).click()
const more = async (item: string) => {
  await page.getByRole('button', { name: 'More… for this domain' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}
/** Uses the menu at the end of a row. */
const moreFor = async (row: string, item: string) => {
  await page.getByRole('button', { name: `More for ${row}`, exact: true }).click()
  await page.getByRole('menuitem', { name: item }).click()
}
const choose = async (label: string, option: string | RegExp) => {
  await dialog.getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option }).click()
}
/** The button moves when records arrive, and a pointer that was pressed on it would be released elsewhere. */
const closeResult = async () => {
  await dialog.getByRole('button', { name: 'Close' }).filter({ hasText: 'Close' }).press('Enter')
  await dialog.waitFor({ state: 'hidden' })
}

let secret = ''

describe('domains', () => {
  it('start with an empty page that says what to do, and reject what is no domain', async () => {
    await page.goto(`${at}/domains`)
    await page.getByText('Add the domain that you send from').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-domains-empty')
    await page.getByRole('button', { name: 'Add domain' }).click()
    await dialog.getByLabel('Name').fill(hostile)
    await submit('Add domain')
    await dialog.getByText('No changes were made').waitFor()
    await staysText(page)
    assert.deepEqual(await findings(page), [])
    await dialog.getByLabel('Name').fill('mail.shop.example.org')
    await submit('Add domain')
    await page.getByRole('heading', { name: 'mail.shop.example.org' }).waitFor()
    await page.getByText('Waiting for DNS records').waitFor()
  })

  it('show their records in the words of the DNS host, each one to copy', async () => {
    const records = page.getByRole('region', { name: 'DNS records' })
    const name = (relative: string) => records.getByRole('cell').getByText(relative, { exact: true })
    await name('_postern.mail.shop.example.org').waitFor()
    await page.getByRole('combobox', { name: 'DNS host' }).click()
    await page.getByRole('option', { name: 'Cloudflare' }).click()
    await name('_postern.mail.shop').waitFor()
    await page.getByText('Set the proxy status of CNAME records to “DNS only”').waitFor()
    await page.getByRole('combobox', { name: 'Domain at the host' }).click()
    await page.getByRole('option', { name: 'mail.shop.example.org' }).click()
    await name('_postern').waitFor()
    await records.getByRole('row').filter({ hasText: 'MX' }).getByText('10', { exact: true }).waitFor()
    await records.getByRole('button', { name: /^Copy name of Ownership/ }).click()
    assert.equal(await clipboard(), '_postern')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-domain-cloudflare')
    await page.getByRole('combobox', { name: 'DNS host' }).click()
    await page.getByRole('option', { name: 'Other' }).click()
    for (const { name: complete, value } of (await domainCalled('mail.shop.example.org')).dns_records) {
      await records.getByText(complete, { exact: true }).first().waitFor()
      await records.getByText(value, { exact: true }).first().waitFor()
    }
  })

  it('tick off each record as soon as a check finds it', async () => {
    await page.getByRole('button', { name: 'Copy as zone file' }).click()
    await page.getByRole('button', { name: 'Copied', exact: true }).waitFor()
    const zone = await clipboard()
    const found = (count: number) => page.getByText(`${count} of 3 required records found`).waitFor()
    await found(0)
    // The return path is forgotten at first.
    await dns.setZone('.', zone.replace(/^bounces\..*$/m, ''))
    await page.getByRole('button', { name: 'Check now' }).click()
    await found(2)
    await page.getByText('Missing:').waitFor()
    assert.equal(await page.getByText('Found', { exact: true }).count(), 4)
    await picture(page, 'app-domain-pending')
    assert.deepEqual(await findings(page), [])
    await dns.setZone('.', zone)
    await page.getByRole('button', { name: 'Check now' }).click()
    await found(3)
    await page.getByRole('status').getByText('Verified', { exact: true }).waitFor()
    assert.equal((await domainCalled('mail.shop.example.org')).status, 'verified')
  })

  it('fit, wide and narrow, light and dark', async () => {
    const { id, name } = await domainCalled('mail.shop.example.org')
    await checkScreens(
      session,
      'app-domains',
      `${at}/domains`,
      (other) => other.getByRole('link', { name }).waitFor(),
      open,
    )
    await checkScreens(
      session,
      'app-domain',
      `${at}/domains/${id}`,
      (other) => other.getByRole('table').waitFor(),
      open,
    )
  })

  it('are used in the code that a new API key comes with', async () => {
    await page.goto(`${at}/api-keys`)
    await page.getByText('Create a key for your application').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'New API key' }).click()
    await dialog.getByLabel('Name').fill(`Shop ${hostile}`)
    await submit('Create API key')
    await dialog.getByText('Send a first mail to yourself:').waitFor()
    await dialog.getByText('TypeScript').click()
    await dialog
      .getByText("from: 'hello")
      .or(dialog.getByText('"from": "hello@mail.shop.example.org"'))
      .waitFor()
    await dialog.getByText('Python').click()
    await dialog.getByText('import json, urllib.request').waitFor()
    await dialog.getByText('curl', { exact: true }).click()
    await dialog.getByText(`curl '${session.url}/v1/messages'`).waitFor()
    secret = await takeSecret(page, /^pk_live_/, 'app-api-key-secret')
    await page.getByRole('button', { name: `Shop ${hostile}`, exact: true }).waitFor()
    await staysText(page)
    await page.goto(`${at}/domains/${(await domainCalled('mail.shop.example.org')).id}`)
  })

  it('get another DKIM key without a pause', async () => {
    await more('Rotate DKIM key')
    await dialog.getByText('Sending does not stop').waitFor()
    await submit('Rotate DKIM key')
    await dialog.getByText('._domainkey.mail.shop.example.org').nth(1).waitFor()
    assert.deepEqual(await findings(page), [])
    await closeResult()
    assert.equal((await domainCalled('mail.shop.example.org')).status, 'verified')
  })

  it('are renamed by keyboard, with a warning that mail stops and with their routes', async () => {
    const { id } = await domainCalled('mail.shop.example.org')
    await body(
      201,
      admin.post(`${api}/routing`, {
        ...{ domain_id: id, match: 'address', address: 'info@mail.shop.example.org', action: 'reject' },
        ...{ endpoint_id: null, forward_to: null },
      }),
    )
    await page.getByRole('button', { name: 'More… for this domain' }).focus()
    await page.keyboard.press('Enter')
    await chooseByKeyboard(page, 'Rename domain')
    await dialog.getByText('Renaming stops mail').waitFor()
    await dialog.getByLabel('New name').and(page.locator(':focus')).waitFor()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('store.example.org')
    await dialog.getByRole('cell', { name: 'info@store.example.org' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-domain-rename')
    await page.keyboard.press('Enter')
    await dialog.getByText('Publish these DNS records').waitFor()
    await closeResult()
    await page.getByRole('heading', { name: 'store.example.org' }).waitFor()
    assert.equal((await domainCalled('store.example.org')).status, 'pending')
  })

  it('change their provider, with a warning that mail stops, as far as the operator allows', async () => {
    await more('Change provider')
    await dialog.getByText('Changing the provider stops mail').waitFor()
    await dialog
      .getByRole('combobox', { name: 'Provider' })
      .and(page.locator('[value="Amazon SES"]'))
      .waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-domain-provider')
    await submit('Change provider and re-verify')
    await dialog.getByText('._domainkey.store.example.org').nth(2).waitFor()
    await closeResult()
    const identity = page.getByRole('region', { name: 'Identity' })
    await identity.getByText('Amazon SES').waitFor()
    assert.equal((await domainCalled('store.example.org')).mta_provider, 'ses')
    await more('Change provider')
    await submit('Change provider and re-verify')
    await dialog.getByText('Publish these DNS records').waitFor()
    await closeResult()
    await identity.getByText('Shared mail servers').waitFor()

    const withdraw = (allow_service_mta: boolean) =>
      body(200, admin.patch(api, { allow_service_mta, reason: 'Too many bounces' }))
    await body(
      201,
      admin.post(`${api}/domains`, { name: 'ses.example.org', mta_provider: 'ses', reason: 'Theirs' }),
    )
    await withdraw(false)
    await page.goto(`${at}/domains/${(await domainCalled('ses.example.org')).id}`)
    await page.getByRole('button', { name: 'More… for this domain' }).click()
    await page.getByRole('menuitem', { name: 'Rename domain' }).waitFor()
    assert.equal(await page.getByRole('menuitem', { name: 'Change provider' }).count(), 0)
    await page.keyboard.press('Escape')
    await withdraw(true)
    await body(
      204,
      admin.delete(`${api}/domains/${(await domainCalled('ses.example.org')).id}`, { reason: 'Not needed' }),
    )
    await page.goto(`${at}/domains/${(await domainCalled('store.example.org')).id}`)
  })

  it('are not deleted while a route uses them', async () => {
    await more('Delete domain')
    await submit('Delete domain')
    await dialog.getByText('No changes were made').waitFor()
    await submit('Cancel')
    const { data } = await body<{ data: { id: number }[] }>(200, admin.get(`${api}/routing`))
    await body(204, admin.delete(`${api}/routing/${data[0]?.id}`, { reason: 'Not needed' }))
    await more('Delete domain')
    await submit('Delete domain')
    await page.getByText('Add the domain that you send from').waitFor()
    assert.deepEqual(await domains(), [])
  })
})

describe('API keys', () => {
  it('are edited, rotated and deleted', async () => {
    await page.goto(`${at}/api-keys`)
    await page.getByRole('button', { name: `Shop ${hostile}`, exact: true }).click()
    await dialog.getByLabel('Name').fill('Web shop')
    await dialog.getByLabel('Allowed IP addresses').fill('192.0.2.0/33')
    await dialog.getByLabel('Allowed IP addresses').press('Enter')
    await submit('Save changes')
    await dialog.getByText(/which is not an IP address/).waitFor()
    await dialog.getByLabel('Allowed IP addresses').press('Backspace')
    await submit('Save changes')
    await page.getByRole('button', { name: 'Web shop', exact: true }).waitFor()
    await moreFor('Web shop', 'Rotate secret')
    await dialog.getByText('are rejected from then on').waitFor()
    await submit('Rotate secret')
    assert.notEqual(await takeSecret(page, /^pk_live_/, 'app-api-key-rotated'), secret)
    await checkScreens(
      session,
      'app-api-keys',
      `${at}/api-keys`,
      (other) => other.getByRole('table', { name: 'API keys' }).waitFor(),
      open,
    )
    await page.getByRole('button', { name: 'More for Web shop' }).focus()
    await page.keyboard.press('Enter')
    await chooseByKeyboard(page, 'Delete API key')
    // The button that cancels has the focus.
    await dialog.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('Create a key for your application').waitFor()
  })
})

describe('members', () => {
  it('are invited, get another role, and are removed', async () => {
    await page.goto(`${at}/members`)
    await page.getByText('you', { exact: true }).waitFor()
    await page.getByRole('rowheader', { name: 'Delete the project' }).waitFor()
    await page.getByRole('button', { name: 'Invite member' }).click()
    await dialog.getByLabel('Email').fill('linus@example.org')
    await choose('Role', /^Viewer/)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-member-invite')
    await submit('Send invitation')
    await page.getByText('invited', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'linus@example.org', exact: true }).click()
    await choose('Role', /^Admin/)
    await submit('Change role')
    await page.getByRole('row').filter({ hasText: 'linus' }).getByText('admin', { exact: true }).waitFor()
    await checkScreens(
      session,
      'app-members',
      `${at}/members`,
      (other) => other.getByRole('table', { name: 'Members' }).waitFor(),
      open,
    )
    await moreFor('linus@example.org', 'Remove member')
    await dialog.getByText('The invitation becomes invalid.').waitFor()
    await submit('Remove member')
    await page.getByRole('button', { name: 'linus@example.org', exact: true }).waitFor({ state: 'detached' })
  })

  it('join without a link if they have an account; who only read see no changes, and can leave', async () => {
    const vera = await session.newCustomer('Vera')
    // As for an account that was made with a link in a mail.
    await session.database.query('update control.users set email_verified = true where id = $1', [vera.id])
    await page.getByRole('button', { name: 'Invite member' }).click()
    await dialog.getByLabel('Email').fill(vera.email)
    await choose('Role', /^Viewer/)
    await submit('Send invitation')
    await page.getByText('invited', { exact: true }).waitFor()
    const hers = await browser.enter(vera)
    await hers.goto('/app/')
    await hers.getByText(`You are invited to ${project.name}`).waitFor()
    assert.deepEqual(await findings(hers), [])
    await picture(hers, 'app-invitation')
    await hers.getByRole('button', { name: 'Join project' }).click()
    await hers.getByRole('heading', { name: project.name }).waitFor()
    await hers.goto(`${at}/domains`)
    await hers.getByText('Add the domain that you send from').waitFor()
    assert.equal(await hers.getByRole('button', { name: 'Add domain' }).count(), 0)
    await hers.goto(`${at}/members`)
    await hers.getByText('you', { exact: true }).waitFor()
    assert.equal(await hers.getByRole('button', { name: 'Invite member' }).count(), 0)
    assert.equal(await hers.getByRole('button', { name: `More for ${cleo.email}` }).count(), 0)
    await hers.getByRole('button', { name: `More for ${vera.email}` }).click()
    await hers.getByRole('menuitem', { name: 'Leave project' }).click()
    await dialogOf(hers).getByRole('button', { name: 'Leave project' }).click()
    await hers.waitForURL('**/app/projects')
  })
})
