import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { totpCode } from '../../server/src/testing/harness/totp.ts'
import { startMtaInbox } from '../../server/src/testing/peers/mta-inbox.ts'
import { findings, type Person, picture, signIn } from '../console/browser.ts'
import { dialogOf } from '../console/dialog.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { openAppSession } from './app-session.ts'
import { mailedLink } from './mail-links.ts'

/** The account page, in both entrances. */
const inbox = await startMtaInbox()
const session = await openAppSession(
  { POSTERN_SYSTEM_MAIL_FROM: 'accounts@postern.example.net', POSTERN_MTA_HOSTS: inbox.url },
  'localhost',
)
const { ada, cleo } = session

/** Opens the account page of the person, through the menu. */
async function openAccount(person: Person): Promise<Page> {
  const page = await session.browser.enter(person)
  await page.goto(`${person.home ?? '/console/'}account`)
  await page.getByRole('heading', { name: 'Your account', exact: true }).waitFor()
  return page
}

/** Submits the open dialog with the password. */
async function confirm(page: Page, { password }: Person, button: string): Promise<void> {
  const dialog = dialogOf(page)
  await dialog.getByRole('textbox', { name: 'Your password' }).fill(password)
  assert.deepEqual(await findings(page), [])
  await dialog.getByRole('button', { name: button, exact: true }).click()
}

/**
 * A virtual authenticator (WebAuthn §11). `skips`: it reports that it has not verified its user, which the server permits. `cannot`:
 * it has no PIN and no sensor.
 */
async function addAuthenticator(page: Page, verification: 'verifies' | 'skips' | 'cannot') {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: verification !== 'cannot',
      isUserVerified: verification !== 'cannot',
      automaticPresenceSimulation: true,
    },
  })
  if (verification === 'skips') {
    await devtools.send('WebAuthn.setResponseOverrideBits', { authenticatorId, isBadUV: true })
  }
  return { remove: () => devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId }) }
}

async function addPasskey(page: Page, person: Person, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await dialogOf(page).getByRole('textbox', { name: 'Name' }).fill(name)
  await confirm(page, person, 'Continue')
  await page.getByRole('list', { name: 'Passkeys' }).getByText(name, { exact: true }).waitFor()
}

async function enterCode(page: Page, code: string): Promise<void> {
  await page.getByLabel('Authentication code').fill(code)
  await page.getByRole('button', { name: 'Confirm' }).click()
}

async function signOut(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
}

describe('the account page', () => {
  it('shows the profile, the second factor, passkeys, sessions and activity, in both entrances', async () => {
    for (const person of [cleo, ada]) {
      const page = await openAccount(person)
      await page.getByText(person.email, { exact: true }).first().waitFor()
      await page.getByText('Chrome on Linux').first().waitFor()
      await page.getByText('this session').waitFor()
      await page.getByText('Signed in with').first().waitFor()
      await checkScreens(
        session,
        `account-${person === cleo ? 'app' : 'console'}`,
        `${person.home ?? '/console/'}account`,
        async (screen) => {
          await screen.getByText('this session').waitFor()
          await screen.getByText('Signed in with').first().waitFor()
        },
        () => session.browser.enter(person),
      )
    }
  })

  it('changes the password, and says next to the field what is wrong', async () => {
    const dora = await session.newCustomer('Dora')
    const page = await openAccount(dora)
    await page.getByRole('button', { name: 'Change password' }).click()
    const next = 'a much better password'
    await dialogOf(page).getByRole('textbox', { name: 'New password' }).fill(next)
    await confirm(page, { ...dora, password: 'not the password' }, 'Change password')
    await dialogOf(page).getByText('The password is wrong.').waitFor()
    const field = dialogOf(page).getByRole('textbox', { name: 'Your password' })
    assert.equal(await field.getAttribute('aria-invalid'), 'true')
    assert.equal(await field.getAttribute('autocomplete'), 'current-password')
    await confirm(page, dora, 'Change password')
    await page.getByText('Your password is changed.').first().waitFor()
    const again = await session.browser.window()
    await again.goto('/app/')
    await signIn(again, { ...dora, password: next })
    await again.getByText('You are not a member of a project.').waitFor()
  })

  it('changes the address with the link in the mail, and undoes it with the link to the old one', async () => {
    const erin = await session.newCustomer('Erin')
    const page = await openAccount(erin)
    await page.getByRole('button', { name: 'Change email' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'New email address' }).fill('erin@example.org')
    await confirm(page, erin, 'Send the link')
    await dialogOf(page).getByText('We sent a link').waitFor()
    await picture(page, 'account-change-email')
    const other = await session.browser.window()
    await other.goto(await mailedLink(inbox, 'erin@example.org', 'confirm-email'))
    await other.getByRole('button', { name: 'Confirm the address' }).click()
    await other.getByText('Your email address was changed.').waitFor()
    assert.deepEqual(await findings(other), [])
    await page.reload()
    await page.getByText('erin@example.org', { exact: true }).waitFor()
    await checkScreens(
      session,
      'undo-email',
      await mailedLink(inbox, erin.email, 'undo-email'),
      (screen) => screen.getByRole('button', { name: 'Restore the old address' }).waitFor(),
      () => session.browser.window(),
    )
    await other.goto(await mailedLink(inbox, erin.email, 'undo-email'))
    await other.getByRole('button', { name: 'Restore the old address' }).click()
    await other.getByText('Your old address is restored.').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  it('ends one session, and all others', async () => {
    const fay = await session.newCustomer('Fay')
    const page = await openAccount(fay)
    for (let n = 0; n < 3; n++) {
      const other = await session.browser.window()
      await other.goto('/app/')
      await signIn(other, fay)
      await other.getByText('You are not a member of a project.').waitFor()
      await other.context().close()
    }
    await page.reload()
    const ends = page.getByRole('button', { name: /^End the session of Chrome on Linux/ })
    await ends.nth(2).waitFor()
    await ends.first().click()
    await ends.nth(2).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'End all other sessions' }).click()
    await ends.first().waitFor({ state: 'detached' })
    await page.getByText('Ended all other sessions').waitFor()
  })

  it('sets up, replaces and removes an authenticator app, and shows backup codes once', async () => {
    const gus = await session.newCustomer('Gus')
    const page = await openAccount(gus)
    const dialog = dialogOf(page)
    const keyShown = async () => {
      await dialog.getByRole('img', { name: 'QR code of the authenticator' }).waitFor()
      const secret = (await dialog.locator('code').first().textContent()) ?? ''
      return `otpauth://totp/Postern:x?secret=${secret}`
    }
    await page.getByRole('button', { name: 'Set up' }).click()
    await confirm(page, gus, 'Continue')
    const first = await keyShown()
    assert.equal(await dialog.getByRole('list', { name: 'Backup codes' }).getByRole('listitem').count(), 10)
    assert.deepEqual(await findings(page), [])
    await picture(page, 'account-set-up')
    await dialog.getByLabel('Authentication code').fill(totpCode(first))
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('on', { exact: true }).waitFor()

    await page.getByRole('button', { name: 'New backup codes' }).click()
    await confirm(page, gus, 'Create new codes')
    await dialog.getByRole('button', { name: 'Done' }).click()

    await page.getByRole('button', { name: 'Replace' }).click()
    await confirm(page, gus, 'Continue')
    const second = await keyShown()
    assert.notEqual(second, first)
    await dialog.getByLabel('Authentication code').fill(totpCode(second))
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('Replaced the authenticator app').waitFor()

    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await confirm(page, gus, 'Remove')
    await page.getByText('off', { exact: true }).waitFor()
  })

  it('names the projects that prevent deleting the account, and deletes it otherwise', async () => {
    const page = await openAccount(cleo)
    await page.getByRole('button', { name: 'Delete account' }).click()
    await confirm(page, cleo, 'Delete account')
    await dialogOf(page)
      .getByText(/You own projects: Acme/)
      .waitFor()
    const hal = await session.newCustomer('Hal')
    const other = await openAccount(hal)
    await other.getByRole('button', { name: 'Delete account' }).click()
    await confirm(other, hal, 'Delete account')
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})

describe('a passkey', () => {
  let page: Page

  it('that verifies its user signs an administrator in, without a password and a code', async () => {
    page = await openAccount(ada)
    const authenticator = await addAuthenticator(page, 'verifies')
    await addPasskey(page, ada, 'Laptop')
    await page.getByRole('button', { name: 'Rename Laptop' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Name' }).fill('Work laptop')
    await dialogOf(page).getByRole('button', { name: 'Rename' }).click()
    await page.getByText('Work laptop', { exact: true }).waitFor()
    await signOut(page, 'Ada')
    await page.goto('/console/')
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto('/console/account')
    await page.getByText('Signed in with a passkey').first().waitFor()
    await page.getByRole('button', { name: 'Delete Work laptop' }).click()
    await page.getByText('No passkeys').waitFor()
    await authenticator.remove()
  })

  it('that does not verify its user is one factor, so an administrator needs a code as well', async () => {
    await addAuthenticator(page, 'skips')
    await addPasskey(page, ada, 'Button')
    await signOut(page, 'Ada')
    await page.goto('/console/')
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await enterCode(page, '000000')
    await page.getByText('The code is wrong').waitFor()
    assert.deepEqual(await findings(page), [])
    // Not signed in yet: a reload asks for everything again.
    await page.reload()
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await enterCode(page, totpCode(ada.otpauth ?? '', Date.now() + 30_000))
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  it('that does not verify its user signs a customer in, until there is an authenticator app', async () => {
    const ida = await session.newCustomer('Ida')
    const page = await openAccount(ida)
    await addAuthenticator(page, 'skips')
    await addPasskey(page, ida, 'Button')
    await signOut(page, 'Ida')
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByText('Signed in with a passkey').first().waitFor()

    await page.getByRole('button', { name: 'Set up' }).click()
    await confirm(page, ida, 'Continue')
    const dialog = dialogOf(page)
    await dialog.getByRole('img', { name: 'QR code of the authenticator' }).waitFor()
    const otpauth = `otpauth://totp/x?secret=${await dialog.locator('code').first().textContent()}`
    await dialog.getByLabel('Authentication code').fill(totpCode(otpauth))
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('on', { exact: true }).waitFor()
    await signOut(page, 'Ida')
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await picture(page, 'passkey-code')
    await enterCode(page, totpCode(otpauth, Date.now() + 30_000))
    await page.getByRole('heading', { name: 'Your account', exact: true }).waitFor()
  })

  it('of an authenticator that cannot verify its user is not offered by the browser, which the page says', async () => {
    const joe = await session.newCustomer('Joe')
    const page = await openAccount(joe)
    await addAuthenticator(page, 'cannot')
    await addPasskey(page, joe, 'Button')
    await signOut(page, 'Joe')
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByRole('alert').waitFor()
    assert.deepEqual(await findings(page), [])
    await signIn(page, joe)
    await page.getByRole('heading', { name: 'Your account', exact: true }).waitFor()
  })
})
