import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import { openDesk } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited } from './dialog.ts'
import { makeProject } from './seed.ts'
import { looks } from './visual-checks.ts'

const desk = await openDesk()
const { admin, ada, grace } = desk
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
const graces = new Caller(desk.url, (await desk.postern('token', '--email', grace.email)).trim())
const { resource: endpoint } = await body<{ resource: { id: number } }>(
  201,
  graces.post(`${acmePath}/endpoints`, { name: 'Orders', url: `${desk.receiver.url}/orders`, events: [] }),
)
await body(200, graces.post(`${acmePath}/endpoints/${endpoint.id}/rotate`, { reason: 'Leaked in a log' }))
await body(200, admin.patch(acmePath, { is_locked: true, reputation_score: 20, reason: 'Card testing' }))
const { id: lockId } = await audited(admin, acme.id, 'projects.edit', 'Card testing')
await body(200, admin.patch(`/admin/projects/${nasty.id}`, { is_locked: true, reason: hostile }))
const refused = await graces.patch('/admin/projects/999999', { name: 'Nobody' })
assert.equal(refused.status, 404)

let page: Page
before(async () => {
  page = await desk.browser.enter(ada)
})
const rows = () => page.getByRole('table', { name: 'Audit' }).getByRole('row')
/** What is told, newest first, reasons included. */
const told = async (): Promise<string[]> =>
  page.getByRole('table', { name: 'Audit' }).locator('tbody td:first-child').allTextContents()
const verification = () => page.getByRole('region', { name: 'Verification' })
const projectAudit = `/console/projects/${acme.id}/audit`

describe('the audit of a project', () => {
  it('is told in sentences, with reasons and exceptions, and is found intact as the page opens', async () => {
    await page.goto(projectAudit)
    await rows().filter({ hasText: 'Card testing' }).waitFor()
    await eventually(
      'names are found',
      async () => (await told())[0] === 'Ada locked Acme and set its score to 20: Card testing',
    )
    assert.deepEqual((await told()).slice(1), [
      'Grace rotated the secret of endpoint Orders of Acme: Leaked in a log',
      'Grace added endpoint Orders to Acme',
      'Ada invited bo@example.com to Acme as viewer: Sales agreed past a limit',
      'Ada let Acme use our own MTAs: A customer since 2019',
      'Ada created Acme',
    ])
    await verification().getByText('intact', { exact: true }).waitFor()
    await verification().getByText('6 rows read').waitFor()
    assert.deepEqual(await findings(page), [])
  })

  it('opens a row by keyboard: who, from where, why, what changed, and its place in the chain', async () => {
    await page.getByRole('table', { name: 'Audit' }).getByRole('link').first().focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Ada locked Acme and set its score to 20' }).waitFor()
    assert.equal(new URL(page.url()).pathname, `/console/audit/${lockId}`)
    const changes = page.getByRole('table')
    assert.match((await changes.getByRole('row', { name: /is_locked/ }).textContent()) ?? '', /false.*true/)
    const entry = await body<Record<string, unknown>>(200, admin.get(`/admin/audit/${lockId}`))
    for (const text of ['ada@example.com', '127.0.0.1', 'node', entry['request_id'], entry['hash']]) {
      await page.getByText(String(text), { exact: true }).waitFor()
    }
    await page.getByText('Card testing', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
  })

  it('is saved as a file that holds all of it', async () => {
    await page.goto(projectAudit)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ])
    assert.match(download.suggestedFilename(), new RegExp(`^postern-audit-project-${acme.id}-.*\\.ndjson$`))
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
    assert.match(lines.at(-1) ?? '', /"type":"end","rows":6,/)
    await page.getByText('Exported: 6 rows').waitFor()
  })
})

describe('the whole audit', () => {
  it('holds what belongs to no project, and what was done at the shell', async () => {
    await page.goto('/console/audit?project_id=0')
    await rows().filter({ hasText: 'Ada created plan Tiny' }).waitFor()
    const all = await told()
    assert.ok(all.includes("The server's shell made ada@example.com an administrator"))
    assert.ok(all.includes("The server's shell drew an access token of grace@example.com"))
    assert.equal(await page.getByRole('combobox', { name: 'Project' }).inputValue(), 'No project')
  })

  it('is narrowed by project, person, operation, resource and days, which stand in the address', async () => {
    await page.goto('/console/audit')
    await page.getByRole('combobox', { name: 'Who' }).fill('grace')
    await page.getByRole('option', { name: 'Grace <grace@example.com>' }).click()
    await eventually('only what Grace did is shown', async () => (await told()).length === 2)
    await page.getByRole('combobox', { name: 'Project' }).fill('acm')
    await page.getByRole('option', { name: `Acme (${acme.id})` }).click()
    await page.getByRole('combobox', { name: 'Operation' }).fill('rotate')
    await page.getByRole('option', { name: 'endpoints.rotate' }).click()
    await page.getByRole('combobox', { name: 'On what' }).click()
    await page.getByRole('option', { name: 'endpoint' }).click()
    await page.getByLabel('Which endpoint').fill(String(endpoint.id))
    await page.getByLabel('Which endpoint').press('Enter')
    await eventually('one row fits all of it', async () => (await told()).length === 1)
    const today = new Date().toISOString().slice(0, 10)
    await page.getByLabel('To', { exact: true }).fill(today)
    await page.waitForURL(/to=/)
    assert.deepEqual(await told(), ['Grace rotated the secret of endpoint Orders of Acme: Leaked in a log'])
    assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), {
      project_id: String(acme.id),
      actor: String(grace.id),
      operation: 'endpoints.rotate',
      resource: `endpoint:${endpoint.id}`,
      to: today,
    })
    await page.getByLabel('To', { exact: true }).fill('2020-01-01')
    await page.getByText('Nobody did such a thing').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.goto('/console/audit?resource=%3Cscript%3E&from=yesterday&actor=x')
    await eventually('nonsense is left out', async () => (await told()).length > 10)
  })

  it('shows what customers and operators wrote as text', async () => {
    await page.goto('/console/audit')
    await rows()
      .filter({ hasText: `Ada locked ${hostile}: ${hostile}` })
      .waitFor()
    await page.getByRole('link', { name: `Ada locked ${hostile}` }).click()
    await page.getByRole('heading', { name: `Ada locked ${hostile}` }).waitFor()
    await staysText(page)
    assert.equal(await page.locator('img').count(), 0)
  })

  it('tells who was refused what', async () => {
    await page.goto('/console/audit')
    await page.getByRole('tab', { name: 'Refusals' }).click()
    const row = page.getByRole('table', { name: 'Refusals' }).getByRole('row', { name: /Grace/ })
    await row.waitFor()
    assert.match((await row.textContent()) ?? '', /projects\.edit.*not found.*999999.*1/)
    assert.equal(new URL(page.url()).search, '?view=refusals')
    assert.deepEqual(await findings(page), [])
    await page.getByRole('combobox', { name: 'Who' }).click()
    await page.getByRole('option', { name: "The server's shell" }).click()
    await page.getByText('Nobody was refused anything').waitFor()
  })

  it('is verified when somebody asks, and exported for others to verify', async () => {
    await desk.postern('audit', 'checkpoint')
    const publicKey = (await desk.postern('audit', 'key')).trim()
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
    await desk.postern('audit', 'verify', '--file', file, '--public-key', publicKey)
  })

  it('saves nothing of an export that lacks its end', async () => {
    // As a proxy that gives up does: all but the last line arrives.
    await page.route('**/audit/export*', async (route) => {
      const response = await route.fetch()
      const lines = (await response.text()).trimEnd().split('\n')
      await route.fulfill({ response, body: `${lines.slice(0, -1).join('\n')}\n` })
    })
    await page.goto('/console/audit')
    let saved = 0
    page.on('download', () => saved++)
    await page.getByRole('button', { name: 'Export' }).click()
    await page.getByRole('alert').getByText('ends before its last line').waitFor()
    assert.equal(saved, 0)
    assert.deepEqual(await findings(page), [])
    await page.unroute('**/audit/export*')
  })
})

describe('a page of the audit can be read in any light and width:', () => {
  const table = (name: string) => (window: Page) => window.getByRole('table', { name }).waitFor()
  it('acts', () => looks(desk, 'audit', '/console/audit', table('Audit')))
  it('refusals', () => looks(desk, 'audit-refusals', '/console/audit?view=refusals', table('Refusals')))
  it('a project', () =>
    looks(desk, 'audit-project', projectAudit, async (window) => {
      await window.getByText('intact', { exact: true }).waitFor()
      await window.getByText('Grace added').waitFor()
    }))
  it('an act', () =>
    looks(desk, 'audit-entry', `/console/audit/${lockId}`, (window) => window.getByRole('table').waitFor()))
})

/** Rows that nobody did, with hashes that cannot be right. */
async function forge(firstSeq: number, lastSeq: number): Promise<void> {
  await desk.database.query(
    `insert into control.audit (chain, seq, at, actor_id, actor_digest, request_id, operation, project_id,
                                resource_type, resource_id, after, xid, prev_hash, hash)
     select $1::bigint, seq, now(), $4, hash, 'r', 'projects.edit', $1, 'project', $1::text,
            jsonb_build_object('name', repeat('x', 1000)), pg_current_xact_id(), hash, hash
       from generate_series($2::int, $3::int) as seq, decode(repeat('00', 32), 'hex') as hash`,
    [acme.id, firstSeq, lastSeq, desk.ada.id],
  )
}

describe('an audit that somebody has written to', () => {
  it('is found out, and the first row that is not right is named', async () => {
    await forge(7, 7)
    await page.goto(projectAudit)
    await verification().getByText('not intact').waitFor()
    await verification().getByRole('alert').getByText('does not follow on row 6').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'audit-not-intact')
    await page.getByRole('link', { name: `Show row 7 of chain ${acme.id}` }).click()
    await page.getByRole('heading', { name: /^Ada renamed x+… to x+…$/ }).waitFor()
  })

  it('tells how far a long export is, and stops when told to', async () => {
    // About 40 MB.
    await forge(8, 30_000)
    await page.goto(projectAudit)
    await verification()
      .getByRole('link', { name: `Show chain ${acme.id}, of which it is row 7` })
      .waitFor()
    await page.getByRole('button', { name: 'Export' }).click()
    await page.getByText(/Exporting: [1-9][\d,]* rows/).waitFor()
    await picture(page, 'audit-exporting')
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: 'Export' }).waitFor()
    assert.equal(await page.getByText(/Export(ing|ed):/).count(), 0)
  })
})
