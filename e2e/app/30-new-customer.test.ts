import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Locator } from 'playwright-core'
import { partsOf } from '../../server/src/testing/peers/mta-inbox.ts'
import type { Delivery } from '../../server/src/testing/peers/sink.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'
import { Caller } from '../caller.ts'
import { findings, openBrowser, picture } from '../console/browser.ts'
import { openParts } from '../parts.ts'
import { makePlan } from '../stage.ts'

/**
 * The path of a new customer, from signing up to the first delivered mail with a domain of her own, without an
 * administrator. All mail goes through a real Postfix, and the DNS records are served by Knot.
 */
const port = await steadyPort()
const parts = await openParts({
  settings: {
    POSTERN_PUBLIC_URL: `http://127.0.0.1:${port}`,
    POSTERN_HTTP_PORT: String(port),
    POSTERN_CUSTOMER_SIGN_UP: 'true',
    POSTERN_SYSTEM_MAIL_FROM: 'accounts@postern.example.net',
    // The first plan of the installation.
    POSTERN_CUSTOMER_PLAN_ID: '1',
  },
})
const { apiUrl: url, postern, database, dns, sink } = parts
await postern('admin', 'create', '--email', 'ada@postern.example.net')
const admin = new Caller(url, (await postern('token', '--email', 'ada@postern.example.net')).trim())
assert.equal((await makePlan(admin)).id, 1)
const nora = { name: 'Nora', email: 'nora@example.net', password: 'a long enough password' }
const browser = await openBrowser(url)
const page = await browser.window()

let clicks = 0
const click = async (target: Locator) => {
  clicks++
  await target.click()
}
const button = (name: string) => page.getByRole('button', { name, exact: true })
let pastes = 0
const paste = () => {
  pastes++
  return page.evaluate<string>('navigator.clipboard.readText()')
}
/** The mail to this address with a link to a page of the app. */
const mailTo = async (email: string, name: 'confirm-sign-up' | 'invitation') => {
  const textOf = ({ raw }: Delivery) => raw.toString().replaceAll('=\r\n', '').replaceAll('=3D', '=')
  const isLink = new RegExp(`http:\\S+/app/${name}#[\\w-]+`)
  const mail = await sink.next((delivery) => delivery.to[0] === email && isLink.test(textOf(delivery)))
  return { link: isLink.exec(textOf(mail))?.[0] ?? '', html: (await partsOf(mail.raw)).html }
}
/** Clicks the link in the mail to her. */
const openLink = async () => {
  clicks++
  await page.goto((await mailTo(nora.email, 'confirm-sign-up')).link)
}

describe('a new customer', () => {
  it('sends the first mail from a domain of her own, with at most 12 clicks and two pastes', async () => {
    // Her account.
    await page.goto('/')
    await click(page.getByRole('link', { name: 'Sign up' }))
    await page.getByLabel('Name').fill(nora.name)
    await page.getByLabel('Email').fill(nora.email)
    await page.getByRole('textbox', { name: 'Password' }).fill(nora.password)
    await click(button('Sign up'))
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
    await openLink()
    await page.getByRole('textbox', { name: 'Password' }).fill(nora.password)
    await click(button('Create account'))

    // Her project.
    await page.getByRole('heading', { name: 'Get started' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'start-project')
    await page.getByLabel('Project name').fill('Web shop')
    await click(button('Create project'))

    // Her domain, whose records she pastes into her zone.
    await page.getByLabel('Domain').fill('shop.example.com')
    assert.deepEqual(await findings(page), [])
    await click(button('Add domain'))
    await page.getByText('0 of 3 required records found').waitFor()
    await click(button('Copy as zone file'))
    await dns.setZone('shop.example.com', await paste())
    assert.deepEqual(await findings(page), [])
    await picture(page, 'start-domain')
    await click(button('Check now'))
    await page.getByText('shop.example.com is verified.').waitFor()

    // Her key, and the code that uses it.
    await click(button('Create API key'))
    await page.getByText('Shown only once: store it now.').waitFor()
    await page.getByText('Waiting for your first mail…').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'start-mail')
    await click(button('Copy code'))
    const { stdout } = await promisify(execFile)('bash', ['-c', await paste()])
    assert.equal(JSON.parse(stdout).status, 'queued')

    // The page shows the delivery without a reload.
    await page.getByText('Your first mail was delivered').waitFor()
    await page.getByRole('list', { name: 'Events' }).getByText('Delivered').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'start-delivered')
    await sink.next(({ raw }) => /^From: hello@shop\.example\.com\r$/m.test(raw.toString()))

    assert.ok(clicks <= 12, `${clicks} clicks`)
    assert.ok(pastes <= 2, `${pastes} pastes`)
  })

  it('needs no administrator', async () => {
    const audit = await database.query<{ operation: string }>(
      `select operation from control.audit where chain <> 0`,
    )
    assert.deepEqual(audit, [])
  })

  it('finds the steps done on a phone, without the secret', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await page.emulateMedia({ colorScheme: 'dark' })
    const secret = await page.getByText(/^pk_live_/).textContent()
    await page.reload()
    await page.getByText('Your first mail was delivered').waitFor()
    const html = String(await page.evaluate('document.documentElement.outerHTML'))
    assert.ok(secret && !html.includes(secret))
    assert.deepEqual(await findings(page), [])
    await picture(page, 'start-390-dark')
    assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0)
  })

  it('follows a message from the test page to its events', async () => {
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
    await page.getByRole('link', { name: 'Send a test' }).click()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const journey = page.getByRole('region', { name: 'Journey' })
    await journey.getByRole('status').getByText('delivered').waitFor()
    await journey.getByText('Delivered', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'journey-send')
    await page.getByRole('link', { name: 'Messages', exact: true }).click()
    await page.getByRole('table', { name: 'Messages' }).getByRole('link').nth(1).waitFor()
    await picture(page, 'journey-messages')
    await page.getByRole('table', { name: 'Messages' }).getByRole('link').first().click()
    await page.getByRole('heading', { name: 'Events' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'journey-message')
  })

  it('invites a colleague, who joins with the link in the mail', async () => {
    await page.getByRole('link', { name: 'Members', exact: true }).click()
    await button('Invite member').click()
    const email = 'omar@example.net'
    await page.getByRole('dialog').getByLabel('Email').fill(email)
    await page.getByRole('dialog').getByRole('button', { name: 'Send invitation' }).click()
    await page.getByText('invited', { exact: true }).waitFor()
    const { link, html } = await mailTo(email, 'invitation')
    const his = await browser.window()
    await his.setViewportSize({ width: 1440, height: 480 })
    await his.setContent(
      html.replaceAll(url, 'https://mail.example.com').replaceAll(new URL(url).host, 'mail.example.com'),
    )
    await picture(his, 'start-invitation-mail')
    await his.setViewportSize({ width: 1440, height: 900 })
    await his.goto(link)
    await his.getByRole('heading', { name: 'Join Web shop' }).waitFor()
    await his.getByLabel('Name').fill('Omar')
    await picture(his, 'start-invitation')
    await his.getByRole('textbox', { name: 'Password' }).fill(nora.password)
    await his.getByRole('button', { name: 'Create account and join' }).click()
    await his.getByRole('heading', { name: 'Web shop', exact: true }).waitFor()
    assert.deepEqual(await findings(his), [])
  })
})
