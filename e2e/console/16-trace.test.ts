import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'
import { dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, database } = session
const { id: planId } = await makePlan(admin, { name: 'Starter' })
const acme = await makeProject(admin, ada.id, planId, 'Acme')
const birch = await makeProject(admin, ada.id, planId, 'Birch Mill')

const recipient = 'grace@example.net'
const queueId = '4bXkPq2zZzz1Rt'

/** A message with an attempt, inserted directly. */
async function makeMail(projectId: number, subject: string, status: string): Promise<string> {
  const [row] = await database.query<{ id: string }>(
    `insert into mail.messages (id, project_id, identity_id, from_address, subject, recipient_count, size_bytes)
     values (postern.uuid7(postern.now()), $1, 1, 'shop@acme.example', $2, 1, 100) returning id`,
    [projectId, subject],
  )
  assert.ok(row)
  await database.query(
    `insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
     values ($1, 0, $2, 'to', $3, $4)`,
    [row.id, projectId, recipient, status],
  )
  return row.id
}

let [ordered, news] = ['', '']
let page: Page
before(async () => {
  ordered = await makeMail(acme.id, 'Your order', 'delivered')
  news = await makeMail(birch.id, 'News of November', 'bounced')
  await database.query(
    `insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, queue_id, outcome)
     values ($1, 0, 1, $2, 'service', $3, 'sent')`,
    [news, birch.id, queueId],
  )
  page = await session.browser.enter(ada)
})

const button = (name: string) => page.getByRole('button', { name, exact: true })
const heading = (name: string) => page.getByRole('heading', { name, level: 1 })
const field = () => page.getByRole('textbox', { name: 'Header, report or reference' })
const results = (window: Page = page) => window.getByRole('table', { name: 'Traced messages' })
const palette = () => page.getByRole('dialog', { name: 'Jump to' })

const header = () => `Delivered-To: ${recipient}
Message-ID: <${ordered}@acme.example>
From: Acme <shop@acme.example>
To: ${recipient}
Subject: Your order`

describe('a trace', () => {
  it('finds the message and the project of a pasted header, marked as a guess', async () => {
    await page.goto('/console/')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Trace' }).click()
    await heading('Trace').waitFor()
    await field().fill(header())
    await button('Trace').click()
    const row = results().getByRole('row').last()
    await row.getByRole('link', { name: `To ${recipient}` }).waitFor()
    assert.match((await row.textContent()) ?? '', /guess.*Message-ID.*Acme.*Interventions.*delivered/)
    await page.getByText(/^Only signed references are certain/).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'trace')
    await row.getByRole('link', { name: 'Acme' }).click()
    await heading('Acme').waitFor()
    await page.goBack()
    assert.equal(await field().inputValue(), header())
    await row.getByRole('link', { name: `To ${recipient}` }).click()
    await page.waitForURL(`**/projects/${acme.id}/messages/${ordered}`)
    assert.equal(new URL(page.url()).search, '')
  })

  it('says that nothing was found', async () => {
    await page.goto('/console/trace')
    await field().fill('Hello')
    await button('Trace').click()
    await page.getByText('No message found').waitFor()
    assert.deepEqual(await findings(page), [])
    assert.equal(new URL(page.url()).search, '', 'the text is not in the URL')
  })

  it('starts in the palette, from a queue id, an address or a pasted header', async () => {
    await page.keyboard.press('Control+k')
    await page.keyboard.type(queueId)
    await palette()
      .getByRole('option', { name: `Trace ${queueId}` })
      .waitFor()
    await picture(page, 'palette-trace')
    await page.keyboard.press('Enter')
    await results().getByRole('link', { name: 'Birch Mill' }).waitFor()
    assert.match((await results().textContent()) ?? '', /Queue id/)

    await page.keyboard.press('Control+k')
    await page.keyboard.type(recipient)
    await palette()
      .getByRole('option', { name: `Messages to ${recipient}` })
      .click()
    await heading('Messages').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('recipient'), recipient)

    await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(header())})`)
    await page.keyboard.press('Control+k')
    await palette().getByRole('combobox').waitFor()
    await page.keyboard.press('Control+v')
    await heading('Trace').waitFor()
    await results().getByRole('link', { name: 'Acme' }).waitFor()
  })

  it('fits wide and narrow windows, light and dark', () =>
    checkScreens(session, 'trace', '/console/trace', async (window) => {
      await window.getByRole('textbox', { name: 'Header, report or reference' }).fill(recipient)
      await window.getByRole('button', { name: 'Trace', exact: true }).click()
      await results(window).getByRole('link', { name: 'Birch Mill' }).waitFor()
    }))
})

describe('the messages of all projects', () => {
  const rows = (window: Page = page) =>
    window.getByRole('table', { name: 'Messages', exact: true }).getByRole('row')

  it('are searched by recipient, and filtered by status', async () => {
    await page.goto('/console/messages')
    await page.getByText('Enter a recipient or a sender').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByLabel('Recipient').fill(recipient.toUpperCase())
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'News of November' }).waitFor()
    assert.equal(await rows().count(), 3)
    assert.match((await rows().nth(1).textContent()) ?? '', /News of NovemberBirch Mill.*bounced/)
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'delivered' }).click()
    await page.getByRole('link', { name: 'News of November' }).waitFor({ state: 'detached' })
    assert.equal(await rows().count(), 2)
    await page.getByRole('link', { name: 'Your order' }).click()
    await page.waitForURL(`**/projects/${acme.id}/messages/${ordered}`)
  })

  it('fit wide and narrow windows, light and dark', () =>
    checkScreens(session, 'all-messages', `/console/messages?recipient=${recipient}`, async (window) => {
      await window.getByRole('link', { name: 'News of November' }).waitFor()
    }))
})

describe('the lookups', () => {
  it('show who asked what, under Audit', async () => {
    await page.goto('/console/audit')
    await page.getByRole('tab', { name: 'Lookups' }).click()
    const table = page.getByRole('table', { name: 'Lookups' })
    await table.getByText(`Traced: queue id ${queueId}`).waitFor()
    await table
      .getByText(`Searched messages: recipient ${recipient.toUpperCase()}, status delivered`)
      .waitFor()
    assert.equal(new URL(page.url()).search, '?view=lookups')
    const { data } = await body<{ data: { actor_id: number }[] }>(200, admin.get('/admin/audit/lookups'))
    assert.deepEqual([...new Set(data.map(({ actor_id }) => actor_id))], [ada.id])
    assert.deepEqual(await findings(page), [])
    await checkScreens(session, 'lookups', '/console/audit?view=lookups', (window) =>
      window.getByRole('table', { name: 'Lookups' }).waitFor(),
    )
  })
})

describe('an abuse report', () => {
  it('leads from its header to the locked project, with a public note, in six steps', async () => {
    await page.goto('/console/')
    await heading('Overview').waitFor()
    await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(header())})`)
    let steps = 0
    const step = async (act: () => Promise<unknown>) => {
      steps += 1
      await act()
    }
    const fill = (name: string, text: string) =>
      step(() => dialogOf(page).getByRole('textbox', { name }).fill(text))

    await step(async () => {
      await page.keyboard.press('Control+k')
      await palette().getByRole('combobox').waitFor()
      await page.keyboard.press('Control+v')
    })
    await step(() => results().getByRole('link', { name: 'Acme' }).click())
    await step(() => button('Lock').click())
    await fill('Public note', 'We received complaints about your mail.')
    await fill('Reason', 'Abuse report 17')
    await step(() => dialogOf(page).getByRole('button', { name: 'Lock project', exact: true }).click())

    await page.getByRole('alert').getByText('Public note: We received complaints about your mail.').waitFor()
    const { is_locked } = await body<{ is_locked: boolean }>(200, admin.get(`/admin/projects/${acme.id}`))
    assert.deepEqual([is_locked, steps], [true, 6])
  })
})
