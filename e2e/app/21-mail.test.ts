import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { findings, staysText } from '../console/browser.ts'
import { makeSender } from '../console/sender.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { body } from '../stage.ts'
import { openAppSession } from './app-session.ts'

const session = await openAppSession({
  POSTERN_NAME: 'Example Mail',
  POSTERN_COLOR: '#7a1fa2',
  POSTERN_SUPPORT_EMAIL: 'support@example.org',
})
const { cleo, project, admin } = session
const acme = await makeSender(session, 'acme.example', project)
const home = `/app/projects/${project.id}`
const hostile = `<img src=x onerror="document.title='owned'">`
const tomorrow = new Date(Date.now() + 86_400_000).toISOString()

const order = await acme.send({
  to: ['ann@gmail.com'],
  cc: ['bounce-1@example.net'],
  tags: ['receipt'],
  metadata: { order: '4711', note: hostile },
})
await acme.send({ subject: 'Winter sale', to: ['ann@gmail.com'], send_at: tomorrow })
await acme.send({ subject: hostile, to: ['cy@example.net'] })
await eventually('the order has arrived, except for one recipient', async () => {
  const { recipients } = (await acme.program.get(`/messages/${order}`)).body
  return recipients.map(({ status }: { status: string }) => status).join() === 'delivered,bounced'
})

// Events are counted by mailbox provider some minutes later.
await session.database.query(
  `insert into mail.mailbox_provider_counters (project_id, hour_at, mailbox_provider, sent, delivered, bounced)
   select $1, date_trunc('hour', postern.now() - interval '1 hour'), * from (values ('gmail', 612, 608, 3)) as f`,
  [project.id],
)

const requested: string[] = []
let page: Page
before(async () => {
  page = await session.browser.enter(cleo)
  page.on('request', (request) => requested.push(new URL(request.url()).pathname))
})
const list = (name: string) => page.getByRole('table', { name })
const screen = (name: string, path: string, ready: (page: Page) => Promise<void>) =>
  checkScreens(session, `app-${name}`, `${home}${path}`, ready, () => session.browser.enter(cleo))

describe('the home page of a project', () => {
  it('shows the mail, the mailbox providers, the usage, and the name of the installation', async () => {
    await page.goto(home)
    await page.getByText('Example Mail').waitFor()
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
    await eventually('the counters are shown', async () => {
      await page.reload()
      await page.getByRole('heading', { name: 'Mail', exact: true }).waitFor()
      return (await page.getByText('1 of 3').count()) > 0
    })
    await list('Mailbox providers')
      .getByRole('row', { name: /^Gmail 612/ })
      .waitFor()
    await page.getByText('24 hours').click()
    await page.getByText('recipients in 24 hours').waitFor()
    assert.match(await page.title(), /^Acme · Example Mail$/)
    assert.deepEqual(await findings(page), [])
  })

  it('shows what the operator restricted and why, and takes an appeal', async () => {
    await body(
      201,
      admin.post(`/admin/projects/${project.id}/interventions`, {
        ...{ kind: 'warn', public_note: `Too many bounces ${hostile}`, reason: 'Bounce rate of 6 %' },
        ...{ pace_per_hour: null, expires_at: null },
      }),
    )
    await page.goto(home)
    await page.getByText('This project has a warning').waitFor()
    await staysText(page)
    assert.doesNotMatch((await page.textContent('main')) ?? '', /Bounce rate of 6/)
    await page.getByRole('button', { name: 'Appeal' }).click()
    await page.getByLabel('Why should the operator end it?').fill('We removed the imported list.')
    await page.getByRole('button', { name: 'Send appeal' }).click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.getByText('We removed the imported list.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Appeal' }).count(), 0)
    await page.getByRole('link', { name: 'All notices' }).click()
    await list('Notices').getByText('in force').waitFor()
    assert.deepEqual(await findings(page), [])
  })

  it('fits narrow and wide windows', async () => {
    await screen('home', '', (one) => one.getByRole('heading', { name: 'Usage' }).waitFor())
  })
})

describe('messages', () => {
  it('are found by recipient, status, tag and time', async () => {
    await page.goto(`${home}/messages`)
    const subjects = () => list('Messages').getByRole('link').allTextContents()
    await eventually(
      'all are listed',
      async () => (await subjects()).join('|') === `${hostile}|Winter sale|Your order`,
    )
    await page.getByLabel('Recipient').fill('CY@example.net')
    await page.getByLabel('Recipient').press('Enter')
    await eventually('the recipient is found', async () => (await subjects()).join() === hostile)
    await page.goto(`${home}/messages?tag=receipt`)
    await eventually('the tag is found', async () => (await subjects()).join() === 'Your order')
    await page.goto(`${home}/messages?from=2020-01-01&to=2020-01-31`)
    await page.getByText('No matching messages').waitFor()
    await page.goto(`${home}/messages`)
    await list('Messages').getByRole('link').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: hostile }).waitFor()
    await staysText(page)
  })

  it('show their recipients, exact times, and what a recipient waits for; a scheduled one can be canceled', async () => {
    await page.goto(`${home}/messages/${order}`)
    const events = page.getByRole('list', { name: 'Events' })
    await events.getByText('Delivered').waitFor()
    await events.getByText(/550 5\.1\.1 No such user/).waitFor()
    await page.getByText('API key Web shop').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.goto(`${home}/messages?status=scheduled`)
    await list('Messages').getByRole('link', { name: 'Winter sale' }).click()
    await page.getByText(/scheduled the message for/).waitFor()
    await page.getByRole('button', { name: 'Cancel message' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel message' }).click()
    await page.getByText('canceled', { exact: true }).first().waitFor()
  })

  it('fit narrow and wide windows', async () => {
    await screen('messages', '/messages', (one) => one.getByRole('link', { name: 'Your order' }).waitFor())
    await screen('message', `/messages/${order}`, (one) =>
      one.getByRole('list', { name: 'Events' }).getByText('Delivered').waitFor(),
    )
  })
})

describe('a test message', () => {
  let sent = ''

  it('is sent to oneself by default, and its journey is shown as it happens', async () => {
    await page.goto(`${home}/send`)
    const to = page.getByRole('textbox', { name: 'To', exact: true })
    await to.waitFor()
    assert.equal(await to.inputValue(), cleo.email)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const journey = page.getByRole('region', { name: 'Journey' })
    await journey.getByText('Handed over to the mail server').waitFor()
    await journey.getByText('Delivered', { exact: true }).waitFor()
    await journey.getByText(/queued as dev/).waitFor()
    assert.deepEqual(await findings(page), [])
    sent = new URL(page.url()).search
    await page.reload()
    await journey.getByText('Delivered', { exact: true }).waitFor()
    await to.fill('bounce-2@example.net')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await journey.getByText('Bounced: permanently rejected').waitFor()
  })

  it('fits narrow and wide windows', async () => {
    await screen('send', `/send${sent}`, (one) => one.getByText('Delivered', { exact: true }).waitFor())
  })
})

describe('the sending check', () => {
  it('says for each check what was found and what would change it', async () => {
    await page.goto(`${home}/sending-check`)
    await page.getByText('This message would be accepted.').waitFor()
    await page.getByRole('textbox', { name: 'To', exact: true }).fill('bounce-1@example.net')
    await page.getByRole('textbox', { name: 'To', exact: true }).press('Enter')
    await page.getByText('This message would be accepted, but not sent to this recipient.').waitFor()
    await page.getByRole('textbox', { name: 'From', exact: true }).fill('hello@elsewhere.example')
    await page.getByRole('textbox', { name: 'From', exact: true }).press('Enter')
    await page.getByText('This message would be refused.').waitFor()
    await screen('sending-check', '/sending-check', (one) =>
      one.getByText('This message would be accepted.').waitFor(),
    )
  })
})

describe('suppressions', () => {
  it('are searched, added, imported with a report, exported and deleted', async () => {
    await page.goto(`${home}/suppressions`)
    const rows = list('Suppressed addresses')
    await rows.getByRole('link', { name: 'bounce-1@example.net' }).waitFor()
    await page.getByRole('button', { name: 'Suppress address' }).click()
    await page.getByRole('dialog').getByLabel('Address').fill('gone@example.net')
    await page.getByRole('dialog').getByRole('button', { name: 'Suppress address' }).click()
    await rows.getByRole('link', { name: 'gone@example.net' }).waitFor()

    await page.getByRole('button', { name: 'Import' }).click()
    const dialog = page.getByRole('dialog')
    await dialog
      .getByLabel('Addresses')
      .fill(`email,note\nold@example.net,x\n${hostile},y\ngone@example.net,z`)
    await dialog.getByRole('button', { name: 'Import' }).click()
    await dialog.getByText('3 lines: 1 added, 1 already suppressed, 0 duplicates, 1 invalid.').waitFor()
    await staysText(page)
    assert.deepEqual(await findings(page), [])
    await dialog.getByRole('button', { name: 'Close' }).last().click()

    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const csv = await readFile(await (await download).path(), 'utf8')
    assert.match(csv, /^address,reason,created_at\r\nbounce-1@example\.net,bounce,.*\r\n/)
    assert.match(csv, /\r\nold@example\.net,manual,/)

    await page.getByRole('textbox', { name: 'Address' }).fill('GONE@example.net')
    await page.getByRole('textbox', { name: 'Address' }).press('Enter')
    await eventually('one is found', async () => (await rows.getByRole('link').count()) === 1)
    await page.getByRole('button', { name: 'More for gone@example.net' }).click()
    await page.getByRole('menuitem', { name: 'Delete suppression' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete suppression' }).click()
    await page.getByText('Not suppressed').waitFor()
    await screen('suppressions', '/suppressions', (one) =>
      one.getByRole('link', { name: 'old@example.net' }).waitFor(),
    )
  })
})

describe('the activity and the settings of a project', () => {
  it('name who changed what, and filter by person and time', async () => {
    await page.goto(`${home}/activity`)
    const rows = list('Activity')
    const imported = rows.getByRole('button', { name: `${cleo.email} imported 1 suppression` })
    await imported.click()
    await page.getByText(/suppressions\.import · from 127\.0\.0\.1/).waitFor()
    await rows.getByRole('button', { name: `${cleo.email} appealed against a notice` }).waitFor()
    await page.getByRole('combobox', { name: 'Person' }).click()
    await page.getByRole('option', { name: cleo.email }).click()
    await imported.waitFor()
    await page.goto(`${home}/activity?from=2020-01-01&to=2020-01-31`)
    await page.getByText('No matching entries').waitFor()
    await screen('activity', '/activity', (one) =>
      one.getByRole('button', { name: /imported 1 suppression/ }).waitFor(),
    )
  })

  it('show the ids for support, and rename the project', async () => {
    await page.goto(`${home}/settings`)
    await page.getByText('support@example.org').waitFor()
    await page.getByRole('button', { name: 'Copy project ID' }).waitFor()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill(hostile)
    await page.getByRole('dialog').getByRole('button', { name: 'Rename project' }).click()
    await page.getByRole('button', { name: /^Project <img/ }).waitFor()
    await staysText(page)
    await screen('settings', '/settings', (one) => one.getByText('Project ID').waitFor())
  })

  it('requested nothing of administrators', () => {
    assert.ok(requested.length > 0)
    assert.deepEqual(
      requested.filter((path) => /^\/(v1\/admin|console)\b/.test(path)),
      [],
    )
  })
})
