import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { startApi } from '../../server/src/testing/harness/api.ts'
import { testDatabase } from '../../server/src/testing/harness/database.ts'
import { findings, openBrowser, picture } from '../console/browser.ts'

/** The documentation in the package. */
const webFolder = path.resolve(import.meta.dirname, '../../server/dist')
const api = await startApi(await testDatabase(), {}, { webFolder })
// A violation of the content security policy is an error in the browser's log, and fails the scenario.
const browser = await openBrowser(api.url)

const pages = {
  start: { path: '', title: 'Postern documentation' },
  guide: { path: 'guide/sending.html', title: 'Sending mail' },
  reference: { path: 'reference/customers/messages.html', title: 'Messages' },
}
const maxReferenceBytes = 1.5 * 1024 * 1024

const open = async (page: Page, { path: address, title }: { path: string; title: string }): Promise<void> => {
  await page.goto(`/docs/${address}`)
  await page.getByRole('heading', { level: 1, name: title }).waitFor()
  await page.waitForLoadState('networkidle')
}

describe('the documentation', () => {
  for (const [name, target] of Object.entries(pages)) {
    it(`has a page “${name}” without serious findings of axe, in both schemes and widths`, async () => {
      for (const [width, scheme] of [
        [1440, 'light'],
        [390, 'dark'],
        [390, 'light'],
      ] as const) {
        const page = await browser.window({ width, scheme })
        await open(page, target)
        await picture(page, `docs-${name}-${width}-${scheme}`)
        assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0)
        if ((width === 390) === (scheme === 'dark'))
          assert.deepEqual(await findings(page), [], `${name}, ${scheme}`)
        await page.context().close()
      }
    })
  }

  it('requests nothing from another host, and at most 1.5 MB for a page of the reference', async (t) => {
    const page = await browser.window()
    const hosts = new Set<string>()
    const responses: string[] = []
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    page.on('response', (response) => responses.push(response.url()))
    await open(page, pages.reference)
    // Fetched again: the browser may have discarded the body of a response.
    const bodies = await Promise.all(responses.map(async (url) => (await page.request.get(url)).body()))
    const total = bodies.reduce((sum, { length }) => sum + length, 0)
    t.diagnostic(`${bodies.length} responses, ${(total / 1024).toFixed(0)} KiB uncompressed`)
    assert.ok(total > 0 && total <= maxReferenceBytes, `${total} bytes`)
    assert.deepEqual([...hosts], [new URL(api.url).host])
  })

  it('finds a word on another page', async () => {
    const page = await browser.window()
    await open(page, pages.start)
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').fill('pgbackrest')
    const found = page.getByRole('option', { name: /Backup and restore/ }).first()
    await found.waitFor()
    await found.click()
    await page.getByRole('heading', { level: 1, name: 'Backup and restore' }).waitFor()
  })

  it('has no link to a page or a heading that does not exist', async () => {
    const home = await (await fetch(`${api.url}/docs/`)).text()
    const queue = ['/docs/', ...linksOf(home, '/docs/')]
    const seen = new Map<string, Set<string>>()
    const links: [from: string, to: string][] = []
    for (let target = queue.pop(); target !== undefined; target = queue.pop()) {
      const { pathname } = new URL(target, api.url)
      if (seen.has(pathname)) continue
      const response = await fetch(`${api.url}${pathname}`)
      const text = await response.text()
      assert.equal(response.status, 200, pathname)
      seen.set(pathname, new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id)))
      if (!response.headers.get('content-type')?.startsWith('text/html')) continue
      for (const link of linksOf(text, pathname)) {
        links.push([pathname, link])
        queue.push(link)
      }
    }
    const broken = links.filter(([, to]) => {
      const { pathname, hash } = new URL(to, api.url)
      return hash !== '' && !seen.get(pathname)?.has(decodeURIComponent(hash.slice(1)))
    })
    assert.deepEqual(broken, [])
    assert.ok(seen.size > 100, `${seen.size} pages`)
  })
})

/** Links of the page to this server, as absolute paths. */
function linksOf(html: string, from: string): string[] {
  return [...html.matchAll(/<a\s[^>]*?href="([^"]+)"/g)]
    .map(([, href = '']) => new URL(href.replaceAll('&amp;', '&'), `${api.url}${from}`))
    .filter(({ origin }) => origin === api.url)
    .map(({ pathname, hash }) => `${pathname}${hash}`)
}
