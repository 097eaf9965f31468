import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { CookieJar } from '../../server/src/testing/harness/cookie-jar.ts'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { startMtaInbox } from '../../server/src/testing/peers/mta-inbox.ts'
import { Caller } from '../caller.ts'
import { findings, signIn } from '../console/browser.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { openAppSession } from './app-session.ts'
import { mailedLink } from './mail-links.ts'

/** How people get accounts: they sign up, or accept an invitation, with the links in mails. */
const inbox = await startMtaInbox()
const session = await openAppSession({
  POSTERN_SYSTEM_MAIL_FROM: 'accounts@postern.example.net',
  POSTERN_MTA_HOSTS: inbox.url,
  POSTERN_CUSTOMER_SIGN_UP: 'true',
  POSTERN_NAME: 'Acme Mail',
  POSTERN_TERMS_URL: 'https://example.com/terms',
  POSTERN_PRIVACY_URL: 'https://example.com/privacy',
})
const { cleo, project } = session
const password = 'a long enough password'

const linkTo = (email: string, page: string) => mailedLink(inbox, email, page)

/** Moves to the field with Tab, and types: the form is usable without a mouse. */
async function typeInto(page: Page, label: string, text: string): Promise<void> {
  const field = page.getByRole('textbox', { name: label, exact: true })
  await eventually(`the focus is in ${label}`, async () => {
    if (await field.evaluate((element) => element === element.ownerDocument.activeElement)) return true
    await page.keyboard.press('Tab')
    return false
  })
  await page.keyboard.type(text)
}

/** Cleo's API client. */
async function signedIn(): Promise<Caller> {
  const jar = new CookieJar(session.url)
  await jar.post('/v1/auth/sign-in', { email: cleo.email, password: cleo.password })
  const { token } = (await (await jar.post('/v1/auth/token')).json()) as { token: string }
  return new Caller(session.url, token)
}
const owner = await signedIn()

async function invite(email: string): Promise<string> {
  const answer = await owner.post(`/projects/${project.id}/members`, { email, role: 'developer' })
  assert.equal(answer.status, 201)
  return linkTo(email, 'invitation')
}

describe('signing up', () => {
  const email = 'dana@example.net'

  it('asks for a name, an address and a password, by keyboard alone', async () => {
    const page = await session.browser.window()
    await page.goto('/app/')
    await page.getByRole('link', { name: 'Sign up' }).click()
    await page.getByRole('heading', { name: 'Sign up' }).waitFor()
    await page.getByText('Acme Mail', { exact: true }).waitFor()
    assert.equal(await page.title(), 'Sign up · Acme Mail')
    assert.equal(
      await page.getByRole('link', { name: 'terms of service' }).getAttribute('href'),
      'https://example.com/terms',
    )
    await typeInto(page, 'Name', 'Dana')
    await typeInto(page, 'Email', 'dana@localhost')
    await typeInto(page, 'Password', password)
    await page.keyboard.press('Enter')
    const field = page.getByRole('textbox', { name: 'Email' })
    await page.getByText('The address must be an email address.').waitFor()
    assert.equal(await field.getAttribute('aria-invalid'), 'true')
    assert.equal(await field.getAttribute('autocomplete'), 'username')
    assert.deepEqual(await findings(page), [])
    await field.fill(email)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
    assert.deepEqual(await findings(page), [])
  })

  it('creates the account with the link in the mail and the password', async () => {
    const page = await session.browser.window()
    await page.goto(await linkTo(email, 'confirm-sign-up'))
    await typeInto(page, 'Password', 'not the password')
    await page.keyboard.press('Enter')
    await page.getByText('The password is wrong.').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('textbox', { name: 'Password' }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByText('You are not a member of a project.').waitFor()
  })

  it('fits narrow and wide windows, in both schemes', async () => {
    const open = () => session.browser.window()
    await checkScreens(
      session,
      'sign-up',
      '/app/sign-up',
      (page) => page.getByRole('heading', { name: 'Sign up' }).waitFor(),
      open,
    )
    await checkScreens(
      session,
      'confirm-sign-up',
      '/app/confirm-sign-up#sup_x',
      (page) => page.getByRole('textbox', { name: 'Password' }).waitFor(),
      open,
    )
  })
})

describe('an invitation', () => {
  it('lets a new person choose a name and a password, and opens the project', async () => {
    const link = await invite('erin@example.net')
    await checkScreens(
      session,
      'invitation',
      link,
      (page) => page.getByRole('button', { name: 'Create account and join' }).waitFor(),
      () => session.browser.window(),
    )
    const page = await session.browser.window()
    await page.goto(link)
    await page.getByRole('heading', { name: `Join ${project.name}` }).waitFor()
    await typeInto(page, 'Name', 'Erin')
    await typeInto(page, 'Password', password)
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === `/app/projects/${project.id}`)
    await page.getByRole('heading', { name: project.name }).waitFor()
    await page.goto(link)
    await page.reload()
    await page.getByText(/has already been used/).waitFor()
  })

  it('asks a person with an account to sign in, and to accept', async () => {
    const fay = await session.newCustomer('Fay')
    const page = await session.browser.window()
    await page.goto(await invite(fay.email))
    await page.getByText('Sign in to accept.').waitFor()
    assert.equal(await page.getByLabel('Email').inputValue(), fay.email)
    await signIn(page, fay)
    await page.getByText(`You are signed in as ${fay.email}`).waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByRole('heading', { name: project.name }).waitFor()
  })

  it('can be accepted with an account that has another address', async () => {
    const other = await session.newCustomer('Gus')
    const page = await session.browser.window()
    await page.goto(await invite('gus-at-work@example.net'))
    await page.getByRole('button', { name: 'I have an account with another address' }).click()
    await signIn(page, other)
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByRole('heading', { name: project.name }).waitFor()
  })

  it('is not accepted twice, and says so', async () => {
    const page = await session.browser.enter(cleo)
    await page.goto('/app/invitation#inv_wrong')
    await page.getByText(/This invitation is invalid/).waitFor()
    assert.deepEqual(await findings(page), [])
  })
})
