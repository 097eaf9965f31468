import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { customers } from '../../../testing/fixtures/customers.ts'
import { inDays } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { sendAllSystemMail } from '../../../testing/harness/system-mail.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const settings = { POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url }
const api = await startApi(database, settings)
const deps = workerDeps(api.context)
const { admin, make, ownProject } = await customers(api, database)

/** Must not appear in a mail. */
const reason = 'Canary: complaint by mallory@example.net'

const round = (of = deps) => sendAllSystemMail(database, of)
const waiting = async () =>
  (await database.query('select from control.system_mails where outcome is null')).length
const subjectOf = ({ html }: { html: string }) =>
  /<title>(.*)<\/title>/.exec(html)?.[1]?.replaceAll('&quot;', '"')

async function shop() {
  const { owner, project } = await ownProject({ name: 'Web shop' })
  const path = `/projects/${project.id}`
  return {
    owner,
    path,
    start: (body: object) => make.makeIntervention(project.id, { reason, ...body }),
    end: (id: number) => admin.post(`${path}/interventions/${id}/end`, { reason }),
    name: `project "Web shop" (number ${project.id})`,
    mails: () => inbox.mails.filter(({ to }) => to.includes(owner.user.email)),
  }
}

function assertContains(mail: { plain: string } | undefined, ...parts: string[]): void {
  for (const part of parts) assert.ok(mail?.plain.includes(part), `${part} is not in: ${mail?.plain}`)
}

describe("a project's owner", () => {
  test('is notified once when an intervention starts, and once when it ends', async () => {
    const { path, start, end, mails } = await shop()
    const expires_at = inDays(1)
    const { id } = await start({ kind: 'pace', pace_per_hour: 77, public_note: 'Clean it up.', expires_at })
    await round()
    await round()
    const [started, ...others] = mails()
    assert.deepEqual(others, [])
    const url = `http://localhost:8080/v1${path}/notices`
    const parts = ['at most 77 recipients per hour', 'Clean it up.', expires_at, `${url}/${id}/appeal`]
    assertContains(started, 'Web shop', ...parts)

    await end(id)
    await round()
    await round()
    const [, ended, ...more] = mails()
    assert.deepEqual(more, [])
    assertContains(ended, 'has ended', 'Clean it up.', `${url}?in_force=true`)
    for (const { text } of mails()) assert.ok(!text.includes('Canary') && !text.includes(admin.email), text)
    assert.equal(await waiting(), 0)
  })

  test('is notified of a lock through is_locked, and of its end', async () => {
    const { path, name, mails } = await shop()
    await admin.patch(path, { is_locked: true, reason })
    await round()
    await admin.patch(path, { is_locked: false, reason })
    await round()
    assert.deepEqual(mails().map(subjectOf), [
      `${name.replace('project', 'Project')} is locked`,
      `Lock on ${name} has ended`,
    ])
  })

  test('gets one mail about an intervention that ended before it was mailed', async () => {
    const { start, end, mails } = await shop()
    const { id, created_at } = await start({ kind: 'hold' })
    const { ended_at } = (await end(id)).body
    await round()
    const [only, ...others] = mails()
    assert.deepEqual(others, [])
    assertContains(only, `from ${created_at} to ${ended_at}`)
  })

  test('is notified of the end even if it happens while the start is mailed', async () => {
    const { name, start, end, mails } = await shop()
    const { id } = await start({ kind: 'hold' })
    const sender = deps.systemMail ?? assert.fail()
    const racing: typeof deps = {
      ...deps,
      systemMail: {
        isUnavailable: false,
        async send(...mail) {
          const handover = await sender.send(...mail)
          await end(id)
          return handover
        },
      },
    }
    await round(racing)
    await round()
    assert.deepEqual(mails().map(subjectOf), [`Mail from ${name} is held`, `Hold on ${name} has ended`])
  })

  test('is not notified of a preview or an edit', async () => {
    const { path, name, start, mails } = await shop()
    await admin.post(`${path}/interventions?dry_run=true`, { kind: 'hold', reason })
    const { id } = await start({ kind: 'warn' })
    await round()
    const change = { pace_per_hour: null, public_note: 'Other words', expires_at: null, reason }
    assert.equal((await admin.patch(`${path}/interventions/${id}`, change)).status, 200)
    await round()
    assert.deepEqual(mails().map(subjectOf), [`Warning for ${name}`])
  })

  test('gets at most 20 mails a day', async () => {
    const { start, end, mails } = await shop()
    const other = await shop()
    for (let n = 0; n < 11; n++) {
      const { id } = await start({ kind: 'warn' })
      await round()
      await end(id)
      await round()
    }
    assert.equal(mails().length, 20)
    assert.equal(await waiting(), 0)
    await other.start({ kind: 'warn' })
    await round()
    assert.equal(other.mails().length, 1, 'another project has its own limit')
    await database.query('update control.daily_counts set day = day - 1')
    await start({ kind: 'warn' })
    await round()
    assert.equal(mails().length, 21)
  })

  test('is notified later if the MTA is unavailable, and not at all if the account is disabled', async () => {
    const { owner, start, mails } = await shop()
    await start({ kind: 'warn' })
    inbox.refuseWith(451)
    await round()
    inbox.refuseWith(null)
    assert.deepEqual([mails().length, await waiting()], [0, 1])
    await round()
    assert.deepEqual([mails().length, await waiting()], [1, 0])
    await database.query('update control.users set is_active = false where id = $1', [owner.user.id])
    await start({ kind: 'warn' })
    await round()
    assert.deepEqual([mails().length, await waiting()], [1, 0])
  })
})
