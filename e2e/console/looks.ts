import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { arePicturesWanted, findings, picture } from './browser.ts'
import type { Desk } from './desk.ts'

/** How a page is looked at: wide and narrow, light and dark. */
const everyWay = [
  { width: 1440, scheme: 'light' },
  { width: 1440, scheme: 'dark' },
  { width: 390, scheme: 'light' },
  { width: 390, scheme: 'dark' },
] as const

/** Each width and each colour once: looking takes axe longer than all the rest. */
const checkedWays = [everyWay[0], everyWay[3]] as const

/** Nothing may stick out, and nothing serious be found. */
export async function looks(
  { browser, ada }: Desk,
  name: string,
  address: string,
  ready: (page: Page) => Promise<void>,
  open: () => Promise<Page> = () => browser.enter(ada),
): Promise<void> {
  const page = await open()
  await page.goto(address)
  await ready(page)
  for (const way of arePicturesWanted ? everyWay : checkedWays) {
    const { width, scheme } = way
    await page.setViewportSize({ width, height: width < 600 ? 844 : 900 })
    await page.emulateMedia({ colorScheme: scheme })
    await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor()
    await picture(page, `${name}-${width}-${scheme}`)
    if (!checkedWays.some((checked) => checked === way)) continue
    assert.deepEqual(await findings(page), [], `${name} at ${width}, ${scheme}`)
    const over = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')
    assert.ok(Number(over) <= 0, `${name} is ${over} px wider than a window of ${width}`)
  }
  await page.context().close()
}
