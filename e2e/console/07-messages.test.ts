import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { body } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { seedProject } from './seed.ts'
import { makeSender } from './sender.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const acme = await makeSender(session)
const hostile = `<img src=x onerror="document.title='owned'">`
const messages = `/console/projects/${acme.project.id}/messages`
const tomorrow = new Date(Date.now() + 86_400_000).toISOString()

const delivered = await acme.send({
  to: ['ann@example.net'],
  cc: ['bo@example.net'],
  bcc: ['bounce-1@example.net'],
  tags: ['receipt'],
  metadata: { order: '4711' },
})
const scheduled = await acme.send({ subject: 'Winter sale', to: ['ann@example.net'], send_at: tomorrow })
const nasty = await acme.send({
  subject: hostile,
  to: ['cy@example.net'],
  // A tag cannot contain markup: the server accepts letters, digits and a few punctuation marks.
  tags: ['javascript-1'],
  metadata: { note: hostile },
})
const statusesOf = async (id: string): Promise<string[]> => {
  const { recipients } = (await session.admin.get(`${acme.path}/messages/${id}`)).body
  return recipients.map(({ status }: { status: string }) => status)
}
await eventually(
  'the first message has arrived, except for one recipient',
  async () => (await statusesOf(delivered)).join() === 'delivered,delivered,bounced',
)
await eventually('the last message has arrived', async () => (await statusesOf(nasty)).join() === 'delivered')

let page: Page
before(async () => {
  page = await session.browser.enter(session.ada)
})
const list = (name = 'Messages') => page.getByRole('table', { name })
const subjects = async (): Promise<string[]> => list().getByRole('link').allTextContents()

describe('messages', () => {
  it('are listed with sender, recipients and status, newest first', async () => {
    await page.goto(messages)
    await list().getByRole('link', { name: 'Winter sale' }).waitFor()
    assert.deepEqual(await subjects(), [hostile, 'Winter sale', 'Your order'])
    const order = list().getByRole('row', { name: /Your order/ })
    assert.match(
      (await order.textContent()) ?? '',
      /orders@acme\.example.*ann@example\.net and 2 more.*bounced/,
    )
    assert.deepEqual(await findings(page), [])
  })

  it('are found by recipient, status and tag, which are kept in the address bar', async () => {
    await page.getByLabel('Recipient').fill('BO@example.net')
    await page.getByLabel('Recipient').press('Enter')
    await eventually(
      'the message of the recipient is found',
      async () => (await subjects()).join() === 'Your order',
    )
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'complained' }).click()
    await page.getByText('No matching messages').waitFor()
    assert.equal(new URL(page.url()).search, '?recipient=BO%40example.net&status=complained')
    assert.deepEqual(await findings(page), [])

    await page.goto(`${messages}?tag=receipt`)
    await eventually(
      'the message with the tag is found',
      async () => (await subjects()).join() === 'Your order',
    )
    assert.equal(await page.getByLabel('Tag').inputValue(), 'receipt')
    await page.goto(`${messages}?status=scheduled&cursor=%3Cscript%3E`)
    await page.getByText('Something went wrong').waitFor()
    await page.goto(`${messages}?status=nonsense`)
    await eventually('invalid values are ignored', async () => (await subjects()).length === 3)
  })

  it('are opened by keyboard, and show their events', async () => {
    await list().getByRole('link').first().focus()
    await page.keyboard.press('j')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your order' }).waitFor()
    const events = page.getByRole('list', { name: 'Events' }).getByRole('listitem')
    await events.first().waitFor()
    const texts = await events.allTextContents()
    assert.match(texts[0] ?? '', /^Accepted/)
    assert.ok(texts.some((event) => /^Sent ann@example\.net.*queued as dev/.test(event)))
    assert.ok(texts.some((event) => /^Delivered ann@example\.net.*2\.0\.0/.test(event)))
    assert.ok(
      texts.some((event) =>
        /^Bounced: permanently rejected.*bounce-1@example\.net.*550 5\.1\.1 No such user/.test(event),
      ),
    )
    const exact = await events.first().locator('time').getAttribute('title')
    assert.match(exact ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/)
    const people = page.getByRole('table', { name: 'Recipients' })
    assert.match(
      (await people.getByRole('row', { name: /bcc bounce-1/ }).textContent()) ?? '',
      /No such user.*bounced/,
    )
    await page.getByText('4711').waitFor()
    await page.getByRole('link', { name: 'API key Web shop' }).waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('link', { name: 'receipt' }).click()
    await eventually(
      'a tag links to all messages with it',
      async () => (await subjects()).join() === 'Your order',
    )
  })

  it("show customers' input as text", async () => {
    for (const address of [messages, `${messages}/${nasty}`]) {
      await page.goto(address)
      await page.getByText(hostile).first().waitFor()
      await staysText(page)
      assert.equal(await page.locator('img').count(), 0)
    }
    await page.getByRole('heading', { name: hostile }).waitFor()
    await page.getByRole('link', { name: 'javascript-1' }).waitFor()
    assert.equal(await page.getByText(hostile).count(), 2)
  })

  it('are canceled by an administrator, with a reason, while scheduled', async () => {
    await page.goto(`${messages}/${scheduled}`)
    await page.getByRole('button', { name: 'Cancel message' }).click()
    const dialog = dialogOf(page)
    await dialog.getByText('Recipients who will not receive the message: 1.').waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'message-cancel')
    await confirm(page, 'Cancel message', 'Sent to the wrong list')
    await dialog.waitFor({ state: 'detached' })
    await eventually(
      'the worker has canceled the message',
      async () => (await statusesOf(scheduled)).join() === 'canceled',
    )
    await page.getByRole('button', { name: 'Cancel message' }).waitFor({ state: 'detached' })
    const { resource_id } = await audited(
      session.admin,
      acme.project.id,
      'messages.cancel',
      'Sent to the wrong list',
    )
    assert.equal(resource_id, scheduled)
  })

  it('that do not exist are not found', async () => {
    await page.goto(`${messages}/01939f0e-7b1a-7c3e-9d2f-0123456789ab`)
    await page.getByText('Not found').waitFor()
    assert.deepEqual(await findings(page), [])
  })
})

describe('suppressed addresses', () => {
  it('are listed with the reason, and link to the messages', async () => {
    await body(201, acme.program.post('/suppressions', { address: 'dan@example.net' }))
    await page.goto(messages)
    await page.getByRole('tab', { name: 'Suppressed addresses' }).click()
    const table = list('Suppressed addresses')
    await table.getByRole('link', { name: 'bounce-1@example.net' }).waitFor()
    assert.match((await table.getByRole('row', { name: /bounce-1/ }).textContent()) ?? '', /Hard bounce/)
    assert.match((await table.getByRole('row', { name: /dan@/ }).textContent()) ?? '', /Added manually/)
    assert.equal(new URL(page.url()).search, '?view=suppressed')
    assert.deepEqual(await findings(page), [])
    await table.getByRole('link', { name: 'bounce-1@example.net' }).click()
    await eventually('the message to it is shown', async () => (await subjects()).join() === 'Your order')
  })

  it('and messages are empty in a new project', async () => {
    const { project } = await seedProject(session, 'New')
    await page.goto(`/console/projects/${project.id}/messages`)
    await page.getByText('No messages yet').waitFor()
    await page.getByRole('tab', { name: 'Suppressed addresses' }).click()
    await page.getByText('No suppressed addresses').waitFor()
    assert.deepEqual(await findings(page), [])
  })
})

describe('a page fits, wide and narrow, light and dark:', () => {
  for (const [name, address] of [
    ['messages', messages],
    ['suppressions', `${messages}?view=suppressed`],
    ['message', `${messages}/${delivered}`],
  ] as const) {
    it(name, () =>
      checkScreens(session, name, address, (window) => window.getByRole('table').first().waitFor()),
    )
  }
})
