import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import pg from 'pg'
import type { Locator, Page } from 'playwright-core'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeSender } from './sender.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, grace } = session
const acme = await makeSender(session)
const home = `/console/projects/${acme.project.id}`
const business = await makePlan(admin, { name: 'Business' })
let page: Page
before(async () => {
  page = await session.browser.enter(ada)
})

const openProject = async () => {
  await page.goto(home)
  await page.getByRole('heading', { name: 'Acme', level: 1 }).waitFor()
}
const alertOf = (title: string): Locator => page.getByRole('alert').filter({ hasText: title })
const closed = () => dialogOf(page).waitFor({ state: 'detached' })

describe('a project that is slow', () => {
  const reason = 'Bought addresses, ticket 4711'
  let last = ''
  before(async () => {
    await body(201, admin.post(`${acme.path}/interventions`, { kind: 'pace', pace_per_hour: 1, reason }))
    for (const to of ['ann', 'bo', 'cy']) last = await acme.send({ to: [`${to}@example.net`] })
  })

  it('shows who slowed it down and why at once, and all checks with at most three clicks', async () => {
    let clicks = 0
    const click = async (target: Locator) => {
      clicks += 1
      await target.click()
    }
    await openProject()
    await alertOf('Paced at 1 recipient per hour')
      .getByText(/^Since .*, by ada@example\.com, without expiry\. Reason: Bought addresses, ticket 4711$/)
      .waitFor()
    assert.deepEqual(await findings(page), [])

    await click(page.getByRole('link', { name: 'Why is mail slow or refused?' }))
    await page.getByRole('heading', { name: 'Sending', level: 2 }).waitFor()
    await page
      .getByText(
        /^Mail is sent slowly: at most 1 recipient per hour\. Waiting: [23]\. At this pace, that takes about [23] hours\.$/,
      )
      .waitFor()
    await page.getByText('This message would be accepted.').waitFor()
    const checks = page.getByRole('list', { name: 'Checks' }).getByRole('listitem')
    assert.equal(await checks.count(), 7)
    for (const check of await checks.allTextContents()) assert.match(check, /passed/)
    assert.ok(clicks <= 3, `it took ${clicks} clicks`)
    assert.deepEqual(await findings(page), [])
  })

  it('explains, by keyboard, which check refuses a message', async () => {
    await page.getByRole('textbox', { name: 'From' }).fill('a@elsewhere.example')
    await page.keyboard.press('Enter')
    await page.getByText('This message would be refused.').waitFor()
    const domain = page.getByRole('listitem').filter({ hasText: 'Sender domain' })
    assert.match((await domain.textContent()) ?? '', /failed/)
    assert.match(page.url(), /from=a%40elsewhere\.example/)
    await page.reload()
    await page.getByText('This message would be refused.').waitFor()
  })

  it('has messages that say what their recipients wait for, and when they are tried next', async () => {
    await page.goto(`${home}/messages/${last}`)
    const row = page.getByRole('table', { name: 'Recipients' }).getByRole('row', { name: /cy@example\.net/ })
    await row.getByText(/at most 1 recipient per hour.*Next attempt: /).waitFor()
    assert.deepEqual(await findings(page), [])
    await checkScreens(session, 'message-waiting', `${home}/messages/${last}`, (window) =>
      window.getByText(/Next attempt: /).waitFor(),
    )
  })

  it('is sped up until tomorrow', async () => {
    await openProject()
    await page.getByRole('button', { name: 'Edit pace' }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('textbox', { name: 'Recipients per hour' }).fill('60')
    await dialog.getByRole('button', { name: '24 hours' }).click()
    await dialog.getByRole('rowheader', { name: 'Expires' }).waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'intervention-edit')
    await confirm(page, 'Save changes', 'The list is better now')
    await closed()
    await alertOf('Paced at 60 recipients per hour')
      .getByText(/, until .*\. Reason: Bought addresses/)
      .waitFor()
    await audited(admin, acme.project.id, 'interventions.edit', 'The list is better now')
  })

  it('is no longer slow when the pace is ended, and keeps the history', async () => {
    await page.getByRole('button', { name: 'End pace' }).click()
    await confirm(page, 'End pace', 'The list is clean')
    await closed()
    await alertOf('Paced at').waitFor({ state: 'detached' })
    await page.getByRole('tab', { name: 'Sending' }).click()
    await page.getByText(/^No intervention restricts this project’s mail\./).waitFor()
    const row = page.getByRole('table', { name: 'Interventions' }).getByRole('row', { name: /pace/ })
    assert.match((await row.textContent()) ?? '', /60 per hour.*by ada@example\.com.*by an administrator/)
  })

  it('is warned from its page', async () => {
    await page.getByRole('button', { name: 'Start an intervention' }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('combobox', { name: 'Kind' }).click()
    await page.getByRole('option', { name: /^Warning/ }).click()
    await dialog.getByRole('textbox', { name: 'Public note' }).fill('Please clean up your list.')
    await dialog.getByRole('rowheader', { name: 'Kind' }).waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'intervention-start')
    await confirm(page, 'Warn project', 'Many bounces')
    await closed()
    await alertOf('This project has a warning').getByText('Public note: Please clean up your list.').waitFor()
    await page.getByRole('button', { name: 'End warning' }).click()
    await confirm(page, 'End warning', 'It is clean')
    await closed()
  })
})

describe('a locked project', () => {
  const hostile = `<img src=x onerror="document.title='owned'">`
  const note = 'Your last mailing went to bought addresses. Please answer us.'
  let owner: Caller
  before(async () => {
    const reason = 'Sold'
    await body(200, admin.patch(`/admin/projects/${acme.project.id}`, { user_id: grace.id, reason }))
    owner = new Caller(session.url, (await session.postern('token', '--email', grace.email)).trim())
  })

  it('is locked for a day with a public note', async () => {
    await openProject()
    await page.getByRole('button', { name: 'Lock', exact: true }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('button', { name: '24 hours' }).click()
    await dialog.getByRole('textbox', { name: 'Public note' }).fill(note)
    await dialog.getByRole('rowheader', { name: 'Public note' }).waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'project-lock-until')
    await confirm(page, 'Lock project', 'Complaints by Example Mail')
    await closed()
    await alertOf('This project is locked')
      .getByText(/^Since .*, by ada@example\.com, until .*\. Reason: Complaints by Example Mail$/)
      .waitFor()
    await audited(admin, acme.project.id, 'interventions.create', 'Complaints by Example Mail')
  })

  it('tells its owner, who appeals', async () => {
    const notices = `/projects/${acme.project.id}/notices`
    const { data } = await body<{ data: { id: number; public_note: string | null }[] }>(
      200,
      owner.get(`${notices}?in_force=true`),
    )
    assert.deepEqual(
      data.map(({ public_note }) => public_note),
      [note],
    )
    assert.doesNotMatch(JSON.stringify(data), /Complaints by Example Mail|ada@example\.com/)
    const text = `The list was ours.\nWe have removed it. ${hostile}`
    await body(201, owner.post(`${notices}/${data[0]?.id}/appeal`, { text }))
  })

  it('shows the appeal to the administrator, who ends the lock', async () => {
    const lock = alertOf('This project is locked')
    await lock.getByText(/^Appeal by grace@example\.com on /).waitFor()
    await lock.getByText('We have removed it.').waitFor()
    await staysText(page)
    assert.deepEqual(await findings(page), [])
    await checkScreens(session, 'project-appeal', home, (window) =>
      window.getByText(/^Appeal by grace@example\.com on /).waitFor(),
    )
    await page.getByRole('button', { name: 'End lock' }).click()
    await confirm(page, 'End lock', 'They removed the list')
    await closed()
    await lock.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Lock', exact: true }).waitFor()
    await audited(admin, acme.project.id, 'interventions.end', 'They removed the list')
    const { is_locked } = await body<{ is_locked: boolean }>(200, admin.get(acme.path))
    assert.equal(is_locked, false)
  })
})

describe('a temporary override', () => {
  it('is set until a time, shows what is restored, and is made permanent', async () => {
    await openProject()
    await page.getByRole('button', { name: 'Edit project' }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('combobox', { name: 'Plan override' }).click()
    await page.getByRole('option', { name: 'Business' }).click()
    await dialog.getByRole('button', { name: '7 days' }).click()
    await dialog.getByText(/admin_plan_id returns to no value/).waitFor()
    await confirm(page, 'Save changes', 'A week of trial')
    await closed()
    const overrides = page.getByRole('region', { name: 'Temporary overrides' })
    await overrides.getByText(/^Plan override: restored to none on .* \(in 7 days\)$/).waitFor()
    assert.deepEqual(await findings(page), [])
    await overrides.getByRole('button', { name: 'Make permanent' }).click()
    await confirm(page, 'Make permanent', 'They have paid')
    await closed()
    await overrides.waitFor({ state: 'detached' })
    await audited(admin, acme.project.id, 'reversals.delete', 'They have paid')
    const { admin_plan_id } = await body<{ admin_plan_id: number }>(200, admin.get(acme.path))
    assert.equal(admin_plan_id, business.id)
  })
})

describe('the queue', () => {
  const statuses = async (ids: string[]) => {
    const messages = ids.map((id) => body<{ status: string }>(200, admin.get(`${acme.path}/messages/${id}`)))
    return (await Promise.all(messages)).map(({ status }) => status)
  }
  let sent: string[] = []
  before(async () => {
    await body(200, admin.post(`${acme.path}/queue/hold`, { reason: 'Sent twice' }))
    sent = [
      await acme.send({ to: ['ann@example.net'] }),
      await acme.send({ to: ['bo@example.org'] }),
      await acme.send({ to: ['cy@example.net'] }),
    ]
  })

  it('is discarded in part, with a preview and progress', async () => {
    await openProject()
    await page.getByRole('button', { name: 'Discard', exact: true }).click()
    const dialog = dialogOf(page)
    await dialog.getByRole('textbox', { name: 'Recipient domain' }).fill('example.net')
    await dialog.getByText('Recipients that will be discarded: 2 of 3.').waitFor()
    await dialog.getByText('Enter a reason.').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'queue-discard')
    await confirm(page, 'Discard mail', 'Sent twice')
    await closed()
    await page.getByText('Discarding finished. Discarded: 2 of 2 (domain example.net)').waitFor()
    assert.deepEqual(await statuses(sent), ['failed', 'held', 'failed'])
    assert.deepEqual(await findings(page), [])
  })

  it('is no longer discarded when that is stopped, until it is resumed', async () => {
    for (const to of ['dan', 'eve']) await acme.send({ to: [`${to}@example.org`], tags: ['sale'] })
    const unblock = await blockResults()
    await page.getByRole('button', { name: 'Discard', exact: true }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Tag' }).fill('sale')
    await confirm(page, 'Discard mail', 'Wrong price')
    await closed()
    await page.getByText('Discarding in progress. Discarded: 0 of 2 (tag sale)').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await confirm(page, 'Stop discarding', 'The price was right')
    await closed()
    await page.getByText('Discarding stopped. Discarded: 0 of 2 (tag sale)').waitFor()
    await audited(admin, acme.project.id, 'discards.stop', 'The price was right')
    await picture(page, 'queue-stopped')
    await unblock()
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await confirm(page, 'Resume discarding', 'It was wrong')
    await closed()
    await page.getByText('Discarding finished. Discarded: 2 of 2 (tag sale)').waitFor()
  })

  it('is released gradually', async () => {
    await page.getByRole('button', { name: 'Release', exact: true }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Recipients per minute' }).fill('100')
    await picture(page, 'queue-release')
    await confirm(page, 'Release mail', 'The rest is fine')
    await closed()
    await audited(admin, acme.project.id, 'queue.release', 'The rest is fine')
    await eventually(
      'the rest is sent',
      async () => (await statuses(sent)).join() === 'failed,delivered,failed',
    )
    await page.getByRole('button', { name: 'Hold', exact: true }).waitFor()
  })
})

/** Keeps the worker from recording results, so that a discard makes no progress. */
async function blockResults(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: session.database.superuserUrl })
  await client.connect()
  await client.query('begin')
  await client.query('lock table mail.attempt_results in share mode')
  return async () => {
    await client.query('rollback')
    await client.end()
  }
}
