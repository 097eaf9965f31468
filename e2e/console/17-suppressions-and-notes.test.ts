import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada } = session
const { id: planId } = await makePlan(admin, { name: 'Starter' })
const acme = await makeProject(admin, ada.id, planId, 'Acme')
const overview = `/console/projects/${acme.id}`
const suppressed = `${overview}/messages?view=suppressed`
const hostile = `<img src=x onerror="document.title='owned'">`

const listOf = async (path: string) =>
  (await body<{ data: { address: string; reason: string }[] }>(200, admin.get(path))).data
const addressesOf = async (path: string) => (await listOf(path)).map(({ address }) => address)
const ofAcme = `/admin/projects/${acme.id}/suppressions`

let page: Page
before(async () => {
  page = await session.browser.enter(ada)
})
const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = () => dialogOf(page)
const closed = () => dialog().waitFor({ state: 'detached' })
const row = (text: RegExp) => page.getByRole('row', { name: text })
const lines = () => dialog().getByRole('table', { name: 'Lines of the import' }).getByRole('row')

describe('suppressions of a project', () => {
  it('are added one by one', async () => {
    await page.goto(suppressed)
    await page.getByText('No suppressed addresses').waitFor()
    await button('Suppress address').click()
    await dialog().getByLabel('Address').fill('Ann@example.net')
    await dialog().getByText('The project can no longer send to this address.').waitFor()
    await confirm(page, 'Suppress address', 'She wrote to us')
    await closed()
    await row(/ann@example\.net.*Added manually/).waitFor()
    await audited(admin, acme.id, 'suppressions.create', 'She wrote to us')
    assert.deepEqual(await findings(page), [])
  })

  it('are imported from a file, after a preview with the result for every line', async () => {
    await button('Import').click()
    const csv = `address,reason\nbo@example.net,complaint\nANN@example.net\n${hostile}\ncy@example.net,spam\nbo@example.net\n`
    await dialog()
      .locator('input[type=file]')
      .setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
    await dialog().getByText('list.csv').waitFor()
    await dialog().getByText('5 lines: 1 added, 1 already suppressed, 1 duplicate, 2 invalid.').waitFor()
    const texts = await lines().allTextContents()
    assert.match(texts[1] ?? '', /^4<img.*invalid$/)
    assert.match(
      texts[2] ?? '',
      /^5cy@example\.net"reason" must be one of bounce, complaint, manual\.invalid$/,
    )
    assert.match(texts[3] ?? '', /^2bo@example\.netadded$/)
    await staysText(page)
    assert.deepEqual(await addressesOf(ofAcme), ['ann@example.net'])
    assert.deepEqual(await findings(page), [])
    await picture(page, 'suppressions-import')
    await confirm(page, 'Import', 'From the previous provider')
    await dialog().getByText('5 lines: 1 added').waitFor()
    await button('Close').last().click()
    await closed()
    await row(/bo@example\.net.*Spam complaint/).waitFor()
    await audited(admin, acme.id, 'suppressions.import', 'From the previous provider')
    await checkScreens(session, 'suppressions-of-project', suppressed, (window) =>
      window.getByText('bo@example.net').waitFor(),
    )
  })

  it('are not imported again', async () => {
    await button('Import').click()
    await dialog().getByLabel('Addresses').fill('bo@example.net')
    await dialog().getByText('1 line: 0 added, 1 already suppressed').waitFor()
    assert.equal(await dialog().getByRole('button', { name: 'Import', exact: true }).isDisabled(), true)
    await button('Cancel').click()
    await closed()
  })

  it('are deleted', async () => {
    await button('More for ann@example.net').click()
    await page.getByRole('menuitem', { name: 'Delete suppression' }).click()
    await confirm(page, 'Delete suppression', 'She wants the mail')
    await closed()
    await eventually(
      'the suppression is deleted',
      async () => (await addressesOf(ofAcme)).join() === 'bo@example.net',
    )
    await row(/ann@example\.net/).waitFor({ state: 'detached' })
  })
})

describe('suppressions for all projects', () => {
  const path = '/admin/suppressions'

  it('are added, imported, found and deleted', async () => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Suppressions' }).click()
    await page.getByRole('heading', { name: 'Suppressions', level: 1 }).waitFor()
    await page.getByText('No suppressed addresses').waitFor()
    await button('Suppress address').click()
    await dialog().getByLabel('Address').fill('dee@example.net')
    await dialog().getByText('No project can send to this address any more.').waitFor()
    await confirm(page, 'Suppress address', 'Demands no mail')
    await closed()
    await row(/dee@example\.net.*Demands no mail/).waitFor()

    await button('Import').click()
    await dialog()
      .getByLabel('Addresses')
      .fill(`ed@example.net,${hostile.replaceAll('"', '')}\nfay@example.net`)
    await dialog().getByText('2 lines: 2 added').waitFor()
    await confirm(page, 'Import', 'List of the legal department')
    await dialog().getByText('2 lines: 2 added').waitFor()
    await button('Close').last().click()
    await row(/fay@example\.net.*List of the legal department/).waitFor()
    await staysText(page)
    assert.deepEqual(await findings(page), [])
    await checkScreens(session, 'suppressions', '/console/suppressions', (window) =>
      window.getByText('fay@example.net').waitFor(),
    )

    await page.getByRole('textbox', { name: 'Address' }).fill('FAY@example.net')
    await page.getByRole('textbox', { name: 'Address' }).press('Enter')
    await row(/dee@example\.net/).waitFor({ state: 'detached' })
    await row(/fay@example\.net/).waitFor()
    await page.goto('/console/suppressions?address=nobody@example.net')
    await page.getByText('Not on the list').waitFor()

    await page.goto('/console/suppressions')
    await button('More for dee@example.net').click()
    await page.getByRole('menuitem', { name: 'Delete from list' }).click()
    await confirm(page, 'Delete from list', 'The demand was withdrawn')
    await closed()
    await row(/dee@example\.net/).waitFor({ state: 'detached' })
    assert.deepEqual(await addressesOf(path), ['ed@example.net', 'fay@example.net'])
  })
})

describe('notes about a project', () => {
  it('are added, edited and deleted on its page, newest first', async () => {
    await page.goto(overview)
    await page.getByText('No notes. Members of the project cannot see notes.').waitFor()
    for (const text of ['Ann from billing called.\nInvoices go out on the 28th.', hostile]) {
      await button('Add note').first().click()
      await dialog().getByLabel('Note').fill(text)
      await dialog().getByText('Only administrators see the note.').waitFor()
      await confirm(page, 'Add note')
      await closed()
      await page
        .getByRole('article')
        .filter({ hasText: text.split('\n')[0] ?? '' })
        .waitFor()
    }
    await staysText(page)
    const notes = page.getByRole('article')
    assert.match((await notes.first().textContent()) ?? '', /onerror/)
    assert.deepEqual(await findings(page), [])
    await checkScreens(session, 'notes', overview, (window) =>
      window.getByText('Ann from billing called.').waitFor(),
    )

    await notes
      .last()
      .getByRole('button', { name: /^More for/ })
      .click()
    await page.getByRole('menuitem', { name: 'Edit note' }).click()
    await dialog().getByLabel('Note').fill('Ann from billing called twice.')
    await confirm(page, 'Save changes')
    await closed()
    await notes
      .filter({ hasText: 'called twice' })
      .getByText(/edited/)
      .waitFor()
    await audited(admin, acme.id, 'notes.edit', null)

    await notes
      .first()
      .getByRole('button', { name: /^More for/ })
      .click()
    await page.getByRole('menuitem', { name: 'Delete note' }).click()
    await confirm(page, 'Delete note', 'Not a note')
    await closed()
    await eventually('one note is left', async () => (await notes.count()) === 1)
  })
})
