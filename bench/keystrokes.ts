import { parseArgs } from 'node:util'
import { chromium, type Page } from 'playwright-core'
import { circumstances, percentile, table, waitForIdleMachine } from './figures.ts'
import { fillOnce } from './lists-fill.ts'
import { startPostern } from './postern.ts'

/**
 * `npm run bench:keystrokes`: the time from a key press in the console's project search until its result is on the
 * screen, with 1,000,000 projects. Requires a built console (`npm run build`). Sign-in is skipped: the browser gets a
 * token from an intercepted request.
 */
const { values: options } = parseArgs({
  options: {
    projects: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
    data: { type: 'string' },
    'other-load-at-most': { type: 'string', default: 'Infinity' },
  },
})
const goalMs = 300
/** Existing names, substrings of names, and names that do not exist. */
const words = ['acme', 'post', 'shop 4711', 'north', 'zzzz', 'o-7', 'in']

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern({ data: options.data })
try {
  await fillOnce(postern.superuser, { projects: Number(options.projects), audit: 0 }, say)
  await waitForIdleMachine(Number(options['other-load-at-most']))
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  })
  const page = await browser.newPage({ baseURL: postern.url })
  await handToken(page)
  const tookMs: number[] = []
  const slowest: [word: string, ms: number][] = []
  for (let round = 0; round < Number(options.rounds); round++) {
    // Reloads the page, because it caches its results.
    await page.goto('/console/projects')
    await page.getByRole('table').waitFor()
    for (const word of words) tookMs.push(...(await typed(page, word, slowest)))
  }
  await browser.close()
  const p99 = percentile(tookMs, 0.99)
  say(
    `\n${await circumstances(postern.superuser)}; ${options.projects} projects; ${tookMs.length} keystrokes.\n`,
  )
  say(
    table(
      ['p50 ms', 'p90 ms', 'p99 ms', 'most ms'],
      [
        [
          ...[0.5, 0.9, 0.99].map((share) => percentile(tookMs, share).toFixed(0)),
          Math.max(...tookMs).toFixed(0),
        ],
      ],
    ),
  )
  const [worst] = slowest.sort(([, one], [, other]) => other - one)
  say(
    `\nThe slowest was after "${worst?.[0]}". Goal: ${goalMs} ms. ${p99 <= goalMs ? 'Reached' : 'Missed'} at p99.`,
  )
} finally {
  await postern.stop()
}

async function handToken(page: Page): Promise<void> {
  const token = await postern.token()
  const expires_at = new Date(Date.now() + 540_000).toISOString()
  await page.route('**/v1/auth/token', (route) => route.fulfill({ json: { token, expires_at } }))
  const user = {
    ...{ id: 1, email: 'bench@example.com', name: '', role: 'admin', rights: 'full' },
    second_factor_enabled: true,
  }
  const session = { id: 1, second_factor_at: null, expires_at }
  await page.route('**/v1/auth/session', (route) => route.fulfill({ json: { user, session } }))
}

/** Types a word one key at a time, waiting for each result, and then clears the field without measuring. */
async function typed(page: Page, word: string, slowest: [word: string, ms: number][]): Promise<number[]> {
  const field = page.getByRole('textbox', { name: 'Search' })
  const tookMs: number[] = []
  for (const [index, key] of [...word].entries()) {
    await page.evaluate(watch, word.slice(0, index + 1))
    await field.press(key === ' ' ? 'Space' : key)
    const ms = (await page.evaluate('window.answered')) as number
    tookMs.push(ms)
    slowest.push([word.slice(0, index + 1), ms])
  }
  await field.fill('')
  await page.getByRole('row').nth(40).waitFor()
  return tookMs
}

/**
 * Runs in the page: resolves with the time from the next input to the first frame in which everything shown matches the
 * input.
 */
function watch(question: string): void {
  const page = globalThis as unknown as {
    answered: Promise<number>
    addEventListener(type: string, listener: () => void, options: object): void
    requestAnimationFrame(callback: () => void): void
    document: {
      body: { innerText: string }
      querySelectorAll(selector: string): Iterable<{ innerText: string }>
    }
  }
  const isAnswered = (): boolean => {
    const names = [...page.document.querySelectorAll('tbody tr td:first-child a')]
    // The second text is shown if a page other than the last has no matches.
    if (names.length === 0) return /No matching projects|No matches so far/.test(page.document.body.innerText)
    return names.every(({ innerText }) => innerText.toLowerCase().includes(question))
  }
  page.answered = new Promise((resolve) => {
    page.addEventListener(
      'beforeinput',
      () => {
        const startedAt = performance.now()
        const look = (): void => {
          if (isAnswered()) resolve(performance.now() - startedAt)
          else page.requestAnimationFrame(look)
        }
        page.requestAnimationFrame(look)
      },
      { once: true, capture: true },
    )
  })
}
