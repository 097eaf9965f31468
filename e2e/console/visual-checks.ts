import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import type { AdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'

/**
 * Checks a page in a wide and a narrow window, and in the light and the dark scheme: nothing overflows, and axe finds
 * nothing serious. axe runs once per width and once per scheme, because it takes longer than everything else.
 */
export async function checkScreens(
  { browser, ada }: AdminSession,
  name: string,
  address: string,
  ready: (page: Page) => Promise<void>,
  open: () => Promise<Page> = () => browser.enter(ada),
): Promise<void> {
  const page = await open()
  await page.goto(address)
  await ready(page)
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: width < 600 ? 844 : 900 })
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme })
      await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor()
      await picture(page, `${name}-${width}-${scheme}`)
      if ((width === 390) === (scheme === 'dark')) {
        assert.deepEqual(await findings(page), [], `${name} at ${width}, ${scheme}`)
      }
      await assertNoOverflow(page, `${name} in a window of ${width}, ${scheme}`)
    }
  }
  await page.context().close()
}

/** Retries, because layout done by scripts lags a frame or two behind a resize. */
async function assertNoOverflow(page: Page, what: string): Promise<void> {
  const over = () => page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth')
  let px = 0
  const fits = async (): Promise<boolean> => {
    px = await over()
    return px <= 0
  }
  await eventually(`${what} fits`, fits).catch((error: Error) => {
    throw new Error(`${error.message}. It is ${px} px too wide`)
  })
}
