import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Page } from 'playwright-core'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, confirm, dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, grace } = session
const hostile = `<img src=x onerror="document.title='owned'">`
const folder = await mkdtemp(path.join(tmpdir(), 'postern-audit-'))
cleanUp(() => rm(folder, { recursive: true, force: true }))

const { id: planId } = await makePlan(admin, { name: 'Tiny', max_users: 1 })
const acme = await makeProject(admin, ada.id, planId, 'Acme')
const acmePath = `/admin/projects/${acme.id}`
const nasty = await makeProject(admin, ada.id, planId, hostile)
await body(
  201,
  admin.post(`${acmePath}/members`, { email: 'bo@example.com', role: 'viewer', reason: 'Sales agreed' }),
)
const graces = new Caller(session.url, (await session.postern('token', '--email', grace.email)).trim())
const { resource: endpoint } = await body<{ resource: { id: number } }>(
  201,
  graces.post(`${acmePath}/endpoints`, { name: 'Orders', url: `${session.receiver.url}/orders`, events: [] }),
)
await body(200, graces.post(`${acmePath}/endpoints/${endpoint.id}/rotate`, { reason: 'Leaked in a log' }))
await body(200, admin.patch(acmePath, { is_locked: true, reputation_score: 20, reason: 'Card testing' }))
const { id: lockId } = await audited(admin, acme.id, 'projects.edit', 'Card testing')
await body(200, admin.patch(`/admin/projects/${nasty.id}`, { is_locked: true, reason: hostile }))
const refused = await graces.patch('/admin/projects/999999', { name: 'Nobody' })
assert.equal(refused.status, 404)

let page: Page
before(async () => {
  page = await session.browser.enter(ada)
})
const rows = () => page.getByRole('table', { name: 'Audit' }).getByRole('row')
/** The displayed sentences with their reasons, newest first. */
const sentences = async (): Promise<string[]> =>
  page.getByRole('table', { name: 'Audit' }).locator('tbody td:first-child').allTextContents()
/** Waits, because names are loaded after the entries. */
const showsSentences = (expected: string[]): Promise<boolean> =>
  eventually(`the audit shows ${JSON.stringify(expected)}`, async () =>
    isDeepStrictEqual(await sentences(), expected),
  )
const verification = () => page.getByRole('region', { name: 'Verification' })
const projectAudit = `/console/projects/${acme.id}/audit`

describe('the audit log of a project', () => {
  it('is shown in sentences, with reasons and limit exceptions, and is verified when the page opens', async () => {
    await page.goto(projectAudit)
    await rows().filter({ hasText: 'Card testing' }).waitFor()
    await showsSentences([
      'Ada locked Acme and set its score to 20: Card testing',
      'Grace rotated the secret of endpoint Orders in Acme: Leaked in a log',
      'Grace created endpoint Orders in Acme',
      'Ada added bo@example.com to Acme as viewer: Sales agreed over plan limit',
      'Ada allowed shared mail servers for Acme: A customer since 2019',
      'Ada created Acme',
    ])
    await verification().getByText('intact', { exact: true }).waitFor()
    await verification().getByText('6 entries verified').waitFor()
    assert.deepEqual(await findings(page), [])
  })

  it('opens an entry by keyboard: actor, address, reason, changes and hash chain', async () => {
    await page.getByRole('table', { name: 'Audit' }).getByRole('link').first().focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Ada locked Acme and set its score to 20' }).waitFor()
    assert.equal(new URL(page.url()).pathname, `/console/audit/${lockId}`)
    const changes = page.getByRole('table')
    assert.match((await changes.getByRole('row', { name: /Locked/ }).textContent()) ?? '', /no.*yes/)
    const entry = await body<Record<string, unknown>>(200, admin.get(`/admin/audit/${lockId}`))
    for (const text of ['ada@example.com', '127.0.0.1', 'node', entry['request_id'], entry['hash']]) {
      await page.getByText(String(text), { exact: true }).waitFor()
    }
    await page.getByText('Card testing', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
  })

  it('is exported as a complete file', async () => {
    await page.goto(projectAudit)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ])
    assert.match(download.suggestedFilename(), new RegExp(`^postern-audit-project-${acme.id}-.*\\.ndjson$`))
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
    assert.match(lines.at(-1) ?? '', /"type":"end","rows":6,/)
    await page.getByText('Exported: 6 entries').waitFor()
  })
})

describe('the whole audit log', () => {
  it('contains entries without a project, and entries from the command line', async () => {
    await page.goto('/console/audit?project_id=0')
    await rows().filter({ hasText: 'Ada created plan Tiny' }).waitFor()
    const all = await sentences()
    assert.ok(all.includes('ada@example.com was made an administrator from the command line'))
    assert.ok(all.includes('An access token for grace@example.com was issued from the command line'))
    assert.equal(await page.getByRole('combobox', { name: 'Project' }).inputValue(), 'No project')
  })

  it('is filtered by project, actor, operation, resource and days, kept in the address bar', async () => {
    await page.goto('/console/audit')
    await page.getByRole('combobox', { name: 'Actor' }).fill('grace')
    await page.getByRole('option', { name: 'Grace <grace@example.com>' }).click()
    await eventually("only Grace's changes are shown", async () => (await sentences()).length === 2)
    await page.getByRole('combobox', { name: 'Project' }).fill('acm')
    await page.getByRole('option', { name: `Acme (${acme.id})` }).click()
    await page.getByRole('combobox', { name: 'Operation' }).fill('rotate')
    await page.getByRole('option', { name: 'endpoints.rotate' }).click()
    await page.getByRole('combobox', { name: 'Resource' }).click()
    await page.getByRole('option', { name: 'endpoint' }).click()
    await page.getByLabel('ID of endpoint').fill(String(endpoint.id))
    await page.getByLabel('ID of endpoint').press('Enter')
    await eventually('one row matches all filters', async () => (await sentences()).length === 1)
    await page.getByRole('combobox', { name: 'Time' }).click()
    await page.getByRole('option', { name: 'Custom' }).click()
    const today = new Date().toISOString().slice(0, 10)
    await page.getByLabel('To (UTC)', { exact: true }).fill(today)
    await page.waitForURL(/to=/)
    await showsSentences(['Grace rotated the secret of endpoint Orders in Acme: Leaked in a log'])
    assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), {
      project_id: String(acme.id),
      actor: String(grace.id),
      operation: 'endpoints.rotate',
      resource: `endpoint:${endpoint.id}`,
      to: today,
    })
    await page.getByLabel('To (UTC)', { exact: true }).fill('2020-01-01')
    await page.getByText('No matching entries').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.goto('/console/audit?resource=%3Cscript%3E&from=yesterday&actor=x')
    await eventually('invalid values are ignored', async () => (await sentences()).length > 10)
  })

  it('shows customers’ and operators’ input as text', async () => {
    await page.goto('/console/audit')
    await rows()
      .filter({ hasText: `Ada locked ${hostile}: ${hostile}` })
      .waitFor()
    await page.getByRole('link', { name: `Ada locked ${hostile}` }).click()
    await page.getByRole('heading', { name: `Ada locked ${hostile}` }).waitFor()
    await staysText(page)
    assert.equal(await page.locator('img').count(), 0)
  })

  it('lists denied requests', async () => {
    await page.goto('/console/audit')
    await page.getByRole('tab', { name: 'Denied requests' }).click()
    const row = page.getByRole('table', { name: 'Denied requests' }).getByRole('row', { name: /Grace/ })
    await row.waitFor()
    assert.match((await row.textContent()) ?? '', /projects\.edit.*not found.*999999.*1/)
    assert.equal(new URL(page.url()).search, '?view=denials')
    assert.deepEqual(await findings(page), [])
    await page.getByRole('combobox', { name: 'User' }).click()
    await page.getByRole('option', { name: 'Command line' }).click()
    await page.getByText('No denied requests').waitFor()
  })

  it('is verified on request, and exported for offline verification', async () => {
    await session.postern('audit', 'checkpoint')
    const publicKey = (await session.postern('audit', 'key')).trim()
    await page.goto('/console/audit')
    await page.getByRole('button', { name: 'Verify' }).click()
    await verification().getByText('signed', { exact: true }).waitFor()
    await verification().getByText('intact', { exact: true }).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ])
    const file = path.join(folder, download.suggestedFilename())
    await download.saveAs(file)
    await session.postern('audit', 'verify', '--file', file, '--public-key', publicKey)
  })

  it('does not save an incomplete export', async () => {
    // Like a proxy that drops the connection: all but the last line arrives.
    await page.route('**/audit/export*', async (route) => {
      const response = await route.fetch()
      const lines = (await response.text()).trimEnd().split('\n')
      await route.fulfill({ response, body: `${lines.slice(0, -1).join('\n')}\n` })
    })
    await page.goto('/console/audit')
    let saved = 0
    page.on('download', () => saved++)
    await page.getByRole('button', { name: 'Export' }).click()
    await page.getByRole('alert').getByText('The export is incomplete').waitFor()
    assert.equal(saved, 0)
    assert.deepEqual(await findings(page), [])
    await page.unroute('**/audit/export*')
  })
})

describe('an audit page fits, wide and narrow, light and dark:', () => {
  const table = (name: string) => (window: Page) => window.getByRole('table', { name }).waitFor()
  it('changes', () => checkScreens(session, 'audit', '/console/audit', table('Audit')))
  it('denied requests', () =>
    checkScreens(session, 'audit-denials', '/console/audit?view=denials', table('Denied requests')))
  it('a project', () =>
    checkScreens(session, 'audit-project', projectAudit, async (window) => {
      await window.getByText('intact', { exact: true }).waitFor()
      await window.getByText('Grace created').waitFor()
    }))
  it('an entry', () =>
    checkScreens(session, 'audit-entry', `/console/audit/${lockId}`, (window) =>
      window.getByRole('table').waitFor(),
    ))
})

/** Inserts entries with wrong hashes. */
async function forge(firstSeq: number, lastSeq: number): Promise<void> {
  await session.database.query(
    `insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, project_id,
                                resource_type, resource_id, after, xid, prev_hash, hash)
     select $1::bigint, seq, now(), 'person', $4, hash, 'r', 'projects.edit', $1, 'project', $1::text,
            jsonb_build_object('name', repeat('x', 1000)), pg_current_xact_id(), hash, hash
       from generate_series($2::int, $3::int) as seq, decode(repeat('00', 32), 'hex') as hash`,
    [acme.id, firstSeq, lastSeq, session.ada.id],
  )
}

describe('an audit log that was tampered with', () => {
  it('is detected, and the first altered entry is identified', async () => {
    await forge(7, 7)
    await page.goto(projectAudit)
    await verification().getByText('not intact').waitFor()
    await verification().getByRole('alert').getByText('does not follow row 6').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'audit-not-intact')
    await page.getByRole('link', { name: `View entry 7 of chain ${acme.id}` }).click()
    await page.getByRole('heading', { name: /^Ada renamed x+… to x+…$/ }).waitFor()
  })

  it('shows the progress of a long export, and stops it', async () => {
    // About 40 MB.
    await forge(8, 30_000)
    await page.goto(projectAudit)
    await verification()
      .getByRole('link', { name: `View chain ${acme.id} (entry 7)` })
      .waitFor()
    await page.getByRole('button', { name: 'Export' }).click()
    await page.getByText(/Exporting: [1-9][\d,]* entries/).waitFor()
    await picture(page, 'audit-exporting')
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: 'Export' }).waitFor()
    assert.equal(await page.getByText(/Export(ing|ed):/).count(), 0)
  })
})

describe('undoing a change', () => {
  it('shows the preview, needs a reason, and adds an entry', async () => {
    const { id } = await makeProject(admin, ada.id, planId, 'Birch Mill')
    const change = { is_locked: true, reputation_score: 20, reason: 'Card testing' }
    await body(200, admin.patch(`/admin/projects/${id}`, change))
    const locked = await audited(admin, id, 'projects.edit', 'Card testing')
    await page.goto(`/console/audit/${locked.id}`)
    await page.getByRole('button', { name: 'Undo', exact: true }).click()
    await dialogOf(page)
      .getByRole('row', { name: /Locked/ })
      .waitFor()
    await picture(page, 'undo')
    await confirm(page, 'Undo change', 'The wrong project')
    const undone = await audited(admin, id, 'audit.undo', 'The wrong project')
    assert.deepEqual(undone.related.at(-1)?.id, locked.id)
    const project = await body<{ is_locked: boolean; reputation_score: number }>(
      200,
      admin.get(`/admin/projects/${id}`),
    )
    assert.deepEqual([project.is_locked, project.reputation_score], [false, 100])
    await page.goto(`/console/projects/${id}/audit`)
    await rows().filter({ hasText: 'Ada undid a change of' }).waitFor()
  })

  it('says why an entry cannot be undone', async () => {
    const { id } = await makeProject(admin, ada.id, planId, 'Cedar Works')
    await body(200, admin.post(`/admin/projects/${id}/queue/hold`, { reason: 'Bounces' }))
    const held = await audited(admin, id, 'queue.hold', 'Bounces')
    await page.goto(`/console/audit/${held.id}`)
    await page.getByRole('button', { name: 'Undo', exact: true }).click()
    await dialogOf(page).getByText('Edit it, end it or start another one instead').waitFor()
  })
})
