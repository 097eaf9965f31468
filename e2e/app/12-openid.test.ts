import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { type IssuerPerson, startOpenidProvider } from '../../server/src/testing/peers/openid-provider.ts'
import { findings, picture, signIn } from '../console/browser.ts'
import { dialogOf } from '../console/dialog.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { openAppSession } from './app-session.ts'

/** Signing in at an OpenID Connect issuer, in both entrances. */
const issuer = await startOpenidProvider('example')
const session = await openAppSession({
  POSTERN_SIGN_IN_ISSUERS: JSON.stringify([
    { ...issuer.configuration, label: 'Example ID', second_factor_acr: ['phr'] },
  ]),
})
issuer.register([session.url])
const { ada, cleo, project } = session

async function enter(person: IssuerPerson, home: string): Promise<Page> {
  issuer.person = person
  const window = await session.browser.window({ trustsPeers: true })
  await window.goto(home)
  await window.getByRole('button', { name: 'Sign in with Example ID' }).click()
  return window
}

const refused = /You cannot sign in with this identity/

describe('an issuer', () => {
  it('has a button on the sign-in pages, which request nothing from it', async () => {
    const page = await session.browser.window({ trustsPeers: true })
    const origins = new Set<string>()
    page.on('request', (request) => origins.add(new URL(request.url()).origin))
    await page.goto('/app/')
    await page.getByRole('button', { name: 'Sign in with Example ID' }).waitFor()
    assert.deepEqual([...origins], [session.url])
    assert.deepEqual(await findings(page), [])
    await checkScreens(
      session,
      'sign-in-issuer',
      '/app/#issuer=refused',
      (screen) => screen.getByText(refused).waitFor(),
      () => session.browser.window(),
    )
  })

  it('does not sign in an identity that is not connected', async () => {
    const page = await enter({ sub: 'stranger', email: cleo.email, email_verified: true }, '/app/')
    await page.getByText(refused).waitFor()
    assert.equal(new URL(page.url()).hash, '')
  })
})

describe('a customer', () => {
  const identity = { sub: 'cleo-at-example', email: 'cleo@elsewhere.example', email_verified: true }

  it('connects an identity on the page of the account, and signs in with it', async () => {
    const page = await session.browser.window({ trustsPeers: true })
    await page.goto('/app/account')
    await signIn(page, cleo)
    issuer.person = identity
    await page.getByRole('button', { name: 'Connect Example ID' }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(cleo.password)
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('The identity is connected.').waitFor()
    const list = page.getByRole('list', { name: 'Single sign-on' })
    await list.getByText('cleo-at-example').waitFor()
    await page.getByText('Connected an identity for single sign-on').waitFor()
    assert.deepEqual(await findings(page), [])
    await list.scrollIntoViewIfNeeded()
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      await picture(page, `account-issuer-${width}`)
    }

    const other = await enter(identity, `/app/projects/${project.id}`)
    await other.getByRole('heading', { name: project.name }).waitFor()
    assert.equal(new URL(other.url()).pathname, `/app/projects/${project.id}`)
    await other.goto('/app/account')
    await other.getByText('Signed in with single sign-on').first().waitFor()

    await page.getByRole('button', { name: 'Disconnect Example ID' }).click()
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(cleo.password)
    await dialog.getByRole('button', { name: 'Disconnect' }).click()
    await page.getByText('Nothing connected').waitFor()
    const again = await enter(identity, '/app/')
    await again.getByText(refused).waitFor()
  })
})

describe('an administrator', () => {
  const identity = { sub: 'ada-at-example' }

  it('enters the console only if the issuer shows a second factor', async () => {
    await session.postern(
      'admin',
      'link',
      '--email',
      ada.email,
      '--issuer',
      issuer.url,
      '--subject',
      identity.sub,
    )
    const page = await enter(identity, '/console/')
    await page.getByText('Administrators need a second factor').waitFor()
    assert.deepEqual(await findings(page), [])
    const entered = await enter({ ...identity, acr: 'phr' }, '/console/audit')
    await entered.getByRole('navigation', { name: 'Main' }).waitFor()
    await entered.getByRole('heading', { name: 'Audit', exact: true }).waitFor()
    assert.equal(new URL(entered.url()).pathname, '/console/audit')
  })
})
