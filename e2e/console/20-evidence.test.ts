import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture } from './browser.ts'
import { dialogOf } from './dialog.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

const session = await openAdminSession()
const { admin, ada, database } = session
const folder = await mkdtemp(path.join(tmpdir(), 'postern-evidence-'))
cleanUp(() => rm(folder, { recursive: true, force: true }))
const { id: planId } = await makePlan(admin, { name: 'Starter' })
const acme = await makeProject(admin, ada.id, planId, 'Acme')
const acmePath = `/admin/projects/${acme.id}`
await body(200, admin.patch(acmePath, { is_locked: true, reason: 'Card testing' }))

let page: Page
before(async () => {
  page = await session.browser.enter(ada)
})
const projectAudit = `/console/projects/${acme.id}/audit`
const button = (name: string) => page.getByRole('button', { name, exact: true })
const files = () => page.getByRole('region', { name: 'Evidence' })

describe('evidence', () => {
  it('is requested for a range', async () => {
    await page.goto(projectAudit)
    await button('Request evidence').click()
    const dialog = dialogOf(page)
    await dialog.getByText(/^A signed file for a recipient outside/).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'evidence-request')
    await dialog.getByRole('textbox', { name: 'Message ids' }).fill('0198f2a4-7777-7000-8000-000000000001')
    await dialog.getByRole('button', { name: 'Request', exact: true }).click()
    await dialog.getByText(/There is no message 0198f2a4-7777-7000-8000-000000000001/).waitFor()
    await dialog.getByRole('textbox', { name: 'Message ids' }).fill('')
    await dialog.getByRole('button', { name: 'Request', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
  })

  it('is downloaded when it is ready, and verifies with the public key alone', async () => {
    await files().getByText('ready', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      files()
        .getByRole('button', { name: /^Download evidence/ })
        .click(),
    ])
    assert.match(download.suggestedFilename(), /^postern-evidence-\d+-project-\d+\.ndjson$/)
    const file = path.join(folder, 'evidence.ndjson')
    await download.saveAs(file)
    const keys = (await session.postern('audit', 'key')).trim().split('\n')
    const options = keys.flatMap((key) => ['--public-key', key])
    const verified = await session.postern('audit', 'verify', '--evidence', file, ...options)
    assert.match(verified, /^The file is intact and was signed at /)
    assert.match(await readFile(file, 'utf8'), /"reason":"Card testing"/)
    const altered = (await readFile(file, 'utf8')).replace('Card testing', 'Card tasting')
    await writeFile(file, altered)
    await assert.rejects(session.postern('audit', 'verify', '--evidence', file, ...options))
  })

  it('is shown with its progress', async () => {
    await database.query(
      `insert into control.evidence (project_id, requested_by, range_from, range_to, message_ids, section, lines,
                                     expected_lines, problem, expires_at)
       select $1, $2, now() - interval '30 days', now(), '{}', section, 40, 100, problem, now() + interval '7 days'
         from (values ('signature', null), ('acts', 'The file is too large. Choose a shorter range or fewer messages.'))
           as made (section, problem)`,
      [acme.id, ada.id],
    )
    await checkScreens(session, 'evidence', projectAudit, (window) =>
      window.getByText(/The file is too large/).waitFor(),
    )
  })
})
