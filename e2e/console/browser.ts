import assert from 'node:assert/strict'
import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { totpCode } from '../../server/src/testing/harness/totp.ts'
import { patienceMs } from '../../server/src/testing/harness/waiting.ts'

export interface Person {
  id: number
  email: string
  password: string
  /** The otpauth:// URI for the authenticator app. Undefined without a second factor. */
  otpauth?: string | undefined
  /** Where the person signs in: `/console/` unless stated otherwise. */
  home?: string
}

/** Debian's Chromium. */
export interface Browser {
  /**
   * Opens a window in which this person is signed in: through the form the first time, and with the session cookie
   * afterwards.
   */
  enter(person: Person, options?: WindowOptions): Promise<Page>
  /** Opens a window without a session. */
  window(options?: WindowOptions): Promise<Page>
}

export interface WindowOptions {
  width?: number
  scheme?: 'light' | 'dark'
  /** Such as `Europe/Berlin`; otherwise UTC. */
  zone?: string
  /** Trusts the certificates of peers. */
  trustsPeers?: boolean
}

/** The headless build, which is a quarter faster. */
const executable = process.env['POSTERN_CHROMIUM'] ?? '/usr/bin/chromium-headless-shell'
const flags = [
  '--no-sandbox',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const axeFile = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** Errors in the browser console of any window fail the scenario. */
export async function openBrowser(url: string): Promise<Browser> {
  const chrome = await chromium.launch({ executablePath: executable, args: flags })
  const complaints: string[] = []
  cleanUp(async () => {
    await chrome.close()
    assert.deepEqual(complaints, [], 'the pages logged errors')
  })
  const cookies = new Map<string, Awaited<ReturnType<BrowserContext['cookies']>>>()

  const window = async ({
    width = 1440,
    scheme = 'light',
    zone = 'UTC',
    trustsPeers = false,
  }: WindowOptions = {}): Promise<Page> => {
    const context = await chrome.newContext({
      baseURL: url,
      viewport: { width, height: width < 600 ? 844 : 900 },
      colorScheme: scheme,
      timezoneId: zone,
      ignoreHTTPSErrors: trustsPeers,
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const page = await context.newPage()
    // Long enough for a busy machine.
    page.setDefaultTimeout(patienceMs)
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('console', (message) => {
      // The browser also logs expected 4xx responses and requests that a scenario aborts.
      if (message.type() === 'error' && !/status of 4\d\d|net::ERR_FAILED/.test(message.text()))
        complaints.push(message.text())
    })
    return page
  }
  return {
    window,
    async enter(person, options) {
      const page = await window(options)
      const known = cookies.get(person.email)
      if (known) {
        await page.context().addCookies(known)
        return page
      }
      await page.goto(person.home ?? '/console/')
      await signIn(page, person)
      await page
        .getByRole('navigation', { name: 'Main' })
        .or(page.getByRole('button', { name: 'Menu' }))
        .first()
        .waitFor()
      cookies.set(person.email, await page.context().cookies())
      return page
    },
  }
}

/** Signs in through the form on the page. A code is valid once: the next sign-in uses the next code, 30 s ahead. */
export async function signIn(page: Page, { email, password, otpauth }: Person, aheadMs = 0): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByRole('textbox', { name: 'Password' }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  if (otpauth === undefined) return
  const field = page.getByLabel('Authentication code')
  await field.waitFor()
  // Generated as late as possible, because a code is valid for one minute.
  await field.fill(totpCode(otpauth, Date.now() + aheadMs))
  await page.getByRole('button', { name: 'Confirm' }).click()
}

interface Finding {
  id: string
  help: string
  nodes: { target: string[]; failureSummary: string }[]
}

/**
 * Serious and critical axe-core violations on the page. The rules with a lower impact do not run: together they take a
 * third of the time. Each rule has one impact, in a private field of axe.
 */
export async function findings(page: Page): Promise<string[]> {
  // Evaluated as a script, because the page's content security policy does not apply to evaluation.
  if (!(await page.evaluate('typeof window.axe === "object"'))) {
    await page.evaluate(await readFile(axeFile, 'utf8'))
  }
  const { violations, count } = (await page.evaluate(runAxe)) as { violations: Finding[]; count: number }
  assert.ok(count > 50, `axe-core has ${count} rules with a serious or critical impact`)
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`),
  )
}

const runAxe = `(async () => {
  const rules = axe._audit.rules.filter(({ enabled, impact, tags }) =>
    enabled && (impact === 'serious' || impact === 'critical') && !tags.includes('experimental') && !tags.includes('deprecated'))
  const values = rules.map(({ id }) => id)
  const { violations } = await axe.run(document, { resultTypes: ['violations'], runOnly: { type: 'rule', values } })
  return { violations, count: values.length }
})()`

/**
 * Asserts that customers' input, such as `<img src=x onerror="document.title='owned'">`, is text on the page: it
 * executed no script and created no element. The content security policy would not prevent the creation of elements.
 */
export async function staysText(page: Page): Promise<void> {
  assert.equal(await page.locator('img').count(), 0)
  assert.notEqual(await page.title(), 'owned')
}

/** The folder for screenshots, set by `npm run screens`. */
const arePicturesWanted = process.env['POSTERN_TEST_PICTURES'] !== undefined

/** Not in the repository; a few are copied into docs/guide/console/. */
const folder = path.resolve(import.meta.dirname, '../../.screens')

export async function picture(page: Page, name: string): Promise<void> {
  if (!arePicturesWanted) return
  await mkdir(folder, { recursive: true })
  await page.screenshot({ path: path.join(folder, `${name}.png`), animations: 'disabled' })
}
