import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Locator } from 'playwright-core'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { emptyDatabase } from '../../server/src/testing/harness/database.ts'
import { killOnExit } from '../../server/src/testing/harness/kill-on-exit.ts'
import { bareEnvironment } from '../../server/src/testing/harness/postern-process.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'
import { findings, openBrowser, picture } from './browser.ts'

/**
 * A new operator has run `npm run dev` for the first time and has only its output. The operator finds the project that
 * should not be sending, sees why, locks it with a reason, and finds the entry in the audit log.
 */
const root = path.resolve(import.meta.dirname, '../..')
const script = path.join(root, 'scripts/dev.ts')
const folder = await mkdtemp(path.join(tmpdir(), 'postern-dev-'))
cleanUp(() => rm(folder, { recursive: true, force: true }))
const database = await emptyDatabase()
const port = await steadyPort()
const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_DATABASE_OWNER_URL: database.superuserUrl,
  POSTERN_HTTP_PORT: String(port),
  POSTERN_DNS_SERVERS: '127.0.0.1:9',
  POSTERN_DEV_FOLDER: folder,
}

/** The output of `npm run dev` until it is ready. */
async function develop(): Promise<string> {
  const child = spawn(process.execPath, [script, '--no-docs'], {
    env,
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  killOnExit(child)
  cleanUp(() => stop(child))
  const lines: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    if (line.startsWith('Ctrl-C stops it')) resolve()
  })
  child.once('exit', () => reject(new Error(`npm run dev exited too early:\n${lines.join('\n')}`)))
  await promise
  return lines.join('\n')
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

const printed = await develop()
const browser = await openBrowser(`http://127.0.0.1:${port}`)
const page = await browser.window()

/** The number of clicks and key presses. Typing a text counts as one. */
let steps = 0
const click = async (target: Locator) => {
  steps++
  await target.click()
}
const type = async (text: string) => {
  steps++
  await page.keyboard.type(text)
}
const press = async (chord: string) => {
  steps++
  await page.keyboard.press(chord)
}

describe('a new operator', () => {
  it('reads the address of the console first, and signs in with the printed credentials', async () => {
    const [, first] = printed.slice(printed.indexOf('Postern is ready.')).split(/\n\s*\n/)
    assert.match(first ?? '', new RegExp(`^\\s*console\\s+http://127.0.0.1:${port}/console\\n`))
    const email = /Sign in as (\S+)/.exec(printed)?.[1] ?? ''
    const password = /password\s+(\S+)/.exec(printed)?.[1] ?? ''
    await page.goto('/console')
    await page.getByLabel('Email').fill(email)
    await page.getByRole('textbox', { name: 'Password' }).fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const field = page.getByLabel('Authentication code')
    await field.waitFor()
    const { stdout } = await promisify(execFile)(process.execPath, [script, 'code'], { env, cwd: root })
    assert.match(stdout, /^\d{6}\n$/)
    await field.fill(stdout.trim())
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await picture(page, 'demo-overview')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Projects' }).click()
    await page.getByRole('link', { name: 'Acme Shop' }).waitFor()
    await picture(page, 'demo-projects')
    assert.deepEqual(await findings(page), [])
  })

  it('finds an abusive project, sees why, locks it and sees the audit entry, in six steps', async () => {
    await click(page.getByRole('button', { name: 'Needs attention' }))
    const worst = page.getByRole('table', { name: 'Projects' }).getByRole('link').first()
    await page.getByRole('link', { name: 'Acme Shop' }).waitFor({ state: 'hidden' })
    const name = (await worst.textContent()) ?? ''
    await picture(page, 'demo-needs-attention')

    await click(worst)
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    // More bounces and complaints than mailbox providers tolerate, all in the last days.
    const tile = (label: string) =>
      page
        .locator('dl > div')
        .filter({ has: page.getByText(label, { exact: true }) })
        .locator('dd')
    await page.getByText('Complained', { exact: true }).first().waitFor()
    assert.ok(Number(await tile('Score').first().textContent()) < 60)
    for (const label of ['Bounced', 'Complained']) {
      assert.equal(await tile(label).first().getAttribute('data-tone'), 'warn', label)
    }
    await picture(page, 'demo-abusive')
    assert.deepEqual(await findings(page), [])

    await click(page.getByRole('button', { name: 'Lock', exact: true }))
    const dialog = page.getByRole('dialog', { name: `Lock ${name}` })
    await dialog.getByText('Enter a reason.').waitFor()
    await type('Bought addresses: complaints and bounces shot up this week')
    await dialog.getByRole('button', { name: 'Lock project', disabled: false }).waitFor()
    await picture(page, 'demo-lock')
    assert.deepEqual(await findings(page), [])
    await press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('This project is locked').waitFor()

    await click(page.getByRole('tab', { name: 'Audit' }))
    await page.getByText('Bought addresses: complaints and bounces shot up this week').first().waitFor()
    assert.ok(steps <= 6, `it took ${steps} steps`)
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'Verify', disabled: false }).waitFor()
    await picture(page, 'demo-audit')
  })

  it('uses the command palette', async () => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Jump to' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('bir')
    await page.getByRole('option', { name: 'Birch & Co' }).first().waitFor()
    await picture(page, 'demo-palette')
    assert.deepEqual(await findings(page), [])
    await page.keyboard.press('Escape')
  })

  it('sends the printed first mail and test event, and sees them at the local receiver', async () => {
    const webhooks = /^ {2}webhooks +(\S+)$/m.exec(printed)?.[1] ?? assert.fail(printed)
    const [, messages, key] =
      /(\/v1\/messages) -H '(Authorization: \S+ \S+)'/.exec(printed) ?? assert.fail(printed)
    const body = /-d '(\{.*\})'/.exec(printed)?.[1] ?? assert.fail(printed)
    const test =
      /(\/v1\/admin\/projects\/\d+\/endpoints\/\d+\/test)'/.exec(printed)?.[1] ?? assert.fail(printed)
    const { stdout: token } = await promisify(execFile)(process.execPath, [script, 'token'], {
      env,
      cwd: root,
    })
    const post = async (to: string, authorization: string, body?: string) => {
      const headers = { authorization, ...(body && { 'content-type': 'application/json' }) }
      const response = await fetch(`http://127.0.0.1:${port}${to}`, {
        method: 'POST',
        headers,
        ...(body && { body }),
      })
      assert.equal(response.status, 202, await response.text())
    }
    await post(messages ?? '', (key ?? '').replace('Authorization: ', ''), body)
    await post(test, `Bearer ${token.trim()}`)
    await page.goto(webhooks)
    for (const event of ['message.accepted', 'message.sent', 'message.delivered', 'endpoint.test']) {
      // The list reloads every five seconds.
      const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: event, exact: true }) })
      await row.getByRole('cell', { name: 'valid', exact: true }).waitFor()
    }
    await page.getByRole('link', { name: 'endpoint.test', exact: true }).click()
    await page.getByText('Signature: valid').waitFor()
    const shown = await page.content()
    const [state = ''] = (await readdir(folder)).filter((name) => name.startsWith('database-'))
    const secret = await readFile(path.join(folder, state, 'webhooks/secret'), 'utf8')
    assert.match(secret, /^whsec_/)
    assert.ok(!shown.includes(secret) && !printed.includes(secret))
  })

  it('has locked that project and no other', async () => {
    const rows = await database.query<{ name: string }>(
      `select projects.name from control.audit as audit
         join control.projects as projects on projects.id = audit.project_id
        where audit.reason like 'Bought addresses%' and projects.is_locked`,
    )
    assert.deepEqual(rows, [{ name: 'Orchard Foods' }])
  })
})
