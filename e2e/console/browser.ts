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
  /** Of the authenticator. */
  otpauth: string
}

/** Debian's Chromium, and what every scenario does with it. */
export interface Browser {
  /** A window in which this person has signed in, through the form. The first time takes the form; later ones its cookie. */
  enter(person: Person, options?: WindowOptions): Promise<Page>
  /** A window in which nobody has. */
  window(options?: WindowOptions): Promise<Page>
}

export interface WindowOptions {
  width?: number
  scheme?: 'light' | 'dark'
}

/** Debian's Chromium without what only somebody who looks at it needs, which takes a quarter less time. */
const executable = process.env['POSTERN_CHROMIUM'] ?? '/usr/bin/chromium-headless-shell'
const flags = [
  '--no-sandbox',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const axeFile = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** What the page complained about in any window: a scenario that ends with some has failed. */
export async function openBrowser(url: string): Promise<Browser> {
  const chrome = await chromium.launch({ executablePath: executable, args: flags })
  const complaints: string[] = []
  cleanUp(async () => {
    await chrome.close()
    assert.deepEqual(complaints, [], 'the pages complained')
  })
  const cookies = new Map<string, Awaited<ReturnType<BrowserContext['cookies']>>>()

  const window = async ({ width = 1440, scheme = 'light' }: WindowOptions = {}): Promise<Page> => {
    const context = await chrome.newContext({
      baseURL: url,
      viewport: { width, height: width < 600 ? 844 : 900 },
      colorScheme: scheme,
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const page = await context.newPage()
    // Of a machine that has other things to do as well.
    page.setDefaultTimeout(patienceMs)
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('console', (message) => {
      // An answer of 4xx is the server's to give and the page's to show; the browser mentions it here as well.
      if (message.type() === 'error' && !/status of 4\d\d/.test(message.text()))
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
      await page.goto('/console/')
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

/** Through the form that is on the page. A code opens one session: who comes again shows the next, 30 s ahead. */
export async function signIn(page: Page, { email, password, otpauth }: Person, aheadMs = 0): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByRole('textbox', { name: 'Password' }).fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const field = page.getByLabel('Code of your authenticator')
  await field.waitFor()
  // As late as possible: a code is good for a minute.
  await field.fill(totpCode(otpauth, Date.now() + aheadMs))
  await page.getByRole('button', { name: 'Confirm' }).click()
}

interface Finding {
  id: string
  impact: string
  help: string
  nodes: { target: string[]; failureSummary: string }[]
}

/** What axe-core finds serious or critical on the page as it is. */
export async function findings(page: Page): Promise<string[]> {
  // By evaluation, which the content security policy of the page does not concern.
  if (!(await page.evaluate('typeof window.axe === "object"'))) {
    await page.evaluate(await readFile(axeFile, 'utf8'))
  }
  const { violations } = (await page.evaluate(
    'window.axe.run(document, { resultTypes: ["violations"] })',
  )) as {
    violations: Finding[]
  }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`),
    )
}

/**
 * What customers wrote, `<img src=x onerror="document.title='owned'">` among it, is text on the page: it made no element,
 * which the content security policy would not have kept it from, and ran nothing.
 */
export async function staysText(page: Page): Promise<void> {
  assert.equal(await page.locator('img').count(), 0)
  assert.notEqual(await page.title(), 'owned')
}

/** `npm run screens`: for somebody who looks at them. */
const arePicturesWanted = process.env['POSTERN_TEST_PICTURES'] !== undefined

/** Left out of the repository; a chosen few are copied into docs/guide/console/. */
const folder = path.resolve(import.meta.dirname, '../../.screens')

export async function picture(page: Page, name: string): Promise<void> {
  if (!arePicturesWanted) return
  await mkdir(folder, { recursive: true })
  await page.screenshot({ path: path.join(folder, `${name}.png`) })
}
