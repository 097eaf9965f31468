import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { exposition } from '../../../platform/telemetry/metrics.ts'
import { customers } from '../../../testing/fixtures/customers.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { Killed, killedAt, points } from '../../../testing/harness/killed-db.ts'
import { VirtualTime } from '../../../testing/harness/virtual-time.ts'
import { patienceMs } from '../../../testing/harness/waiting.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'
import { purgeSystemMails, type SystemMailDeps, sendSystemMails } from './system-mails.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const settings = { POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url }
const api = await startApi(database, settings)
const { admin, ownProject, make } = await customers(api, database)
const { project } = await ownProject({ name: 'Web shop' })
const time = new VirtualTime(database)
await time.set(time.at)
const deps: SystemMailDeps = { ...workerDeps(api.context), db: time.db }
const sender = deps.systemMail ?? assert.fail()
const reason = 'Checked'

const round = (of = deps, atMost = 1000) => sendSystemMails(of, atMost, AbortSignal.timeout(patienceMs))

let invited = 0
async function invite(): Promise<string> {
  const email = `guest${++invited}@example.org`
  await database.query(`insert into control.members (project_id, email, role) values ($1, $2, 'developer')`, [
    project.id,
    email,
  ])
  return email
}
const mailsTo = (email: string) => inbox.mails.filter(({ to }) => to.includes(email))
const field = (name: string, { text }: { text: string }) =>
  new RegExp(`^${name}: (.*)$`, 'im').exec(text)?.[1]?.trim()
const tokenIn = ({ plain }: { plain: string }) => /inv_[\w-]{43}/.exec(plain)?.[0]

interface Row {
  kind: string
  outcome: string | null
  attempts: number
  status: string | null
}
const rows = (where = 'true') =>
  database.query<Row>(`select kind, outcome, attempts, status from control.system_mails where ${where}`)
const waiting = async () => (await rows('outcome is null')).length
/** Removes what an earlier test left. */
const empty = () => database.query('delete from control.system_mails')

const counted = async (kind: string, outcome: string) =>
  Number(
    new RegExp(`^postern_system_mails_total\\{kind="${kind}",outcome="${outcome}"\\} (\\d+)$`, 'm').exec(
      await exposition(),
    )?.[1],
  )

describe('system mail', () => {
  test('is one message in text and HTML with the fields that RFC 3834 and RFC 5322 require', async () => {
    const email = await invite()
    await round()
    await round()
    const [mail = assert.fail('no mail'), ...others] = mailsTo(email)
    assert.deepEqual(others, [])
    assert.equal(field('Auto-Submitted', mail), 'auto-generated')
    assert.match(field('Content-Type', mail) ?? '', /^multipart\/alternative/)
    assert.match(field('Message-ID', mail) ?? '', /^<[\da-f-]{36}@example\.net>$/)
    assert.ok(!Number.isNaN(Date.parse(field('Date', mail) ?? '')))
    assert.equal(field('To', mail), email)
    assert.ok(mail.html.includes(tokenIn(mail) ?? assert.fail(mail.plain)))
    assert.equal(await waiting(), 0)
  })

  test('is stored without its text, address and token', async () => {
    const email = await invite()
    await round()
    const [mail = assert.fail()] = mailsTo(email)
    const stored = await database.query<{ whole: string }>(
      'select mails::text as whole from control.system_mails as mails',
    )
    for (const { whole } of stored) {
      for (const secret of [email, tokenIn(mail) ?? assert.fail()]) assert.ok(!whole.includes(secret), whole)
    }
    assert.ok(!api.logLines.join('').includes(tokenIn(mail) ?? assert.fail()))
  })

  test('is added by the transaction of its cause, or not at all', async () => {
    await empty()
    const refused = await admin.post(`/projects/${project.id}/members`, {
      ...{ email: 'x@example.org', role: 'owner', reason },
    })
    assert.equal(refused.status, 422)
    const tried = await admin.post(`/projects/${project.id}/members?dry_run=true`, {
      ...{ email: 'x@example.org', role: 'viewer', reason },
    })
    assert.equal(tried.status, 200, tried.text)
    assert.deepEqual(await rows(), [])
    const added = await admin.post(`/projects/${project.id}/members`, {
      ...{ email: 'x@example.org', role: 'viewer', reason },
    })
    assert.equal(added.status, 201, added.text)
    assert.equal((await rows()).length, 1)
  })

  test('is not stopped by holds, locks, limits or a stopped queue', async () => {
    await empty()
    const email = await invite()
    assert.equal((await admin.patch(`/projects/${project.id}`, { is_locked: true, reason })).status, 200)
    await database.query(`insert into control.dispatch_holds (scope) values ('all')`)
    await make.makeIntervention(project.id, { kind: 'hold', reason })
    await round()
    assert.equal(mailsTo(email).length, 1)
    await database.query('delete from control.dispatch_holds')
    assert.equal((await admin.patch(`/projects/${project.id}`, { is_locked: false, reason })).status, 200)
  })

  test('is sent once by concurrent workers', async () => {
    await empty()
    const emails = []
    for (let n = 0; n < 20; n++) emails.push(await invite())
    const other = new VirtualTime(database)
    await other.set(time.at)
    await Promise.all([round(), round({ ...deps, db: other.db })])
    assert.deepEqual(
      emails.map((email) => mailsTo(email).length),
      emails.map(() => 1),
    )
  })
})

describe('a worker that dies', () => {
  test('loses no mail at any step, and repeats only what it could not record, as the same message', async () => {
    await empty()
    const seen = new Map<number, string[]>()
    for (const point of points) {
      for (let n = 0; ; n++) {
        const email = await invite()
        let isKilled = false
        const db = killedAt(time.db, point, n, () => {
          isKilled = true
        })
        await round({ ...deps, db }).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error
        })
        if (!isKilled) {
          await time.pass(5)
          await round()
          break
        }
        await time.pass(5)
        await round()
        const mails = mailsTo(email)
        const at = `${point} ${n}`
        seen.set(mails.length, [...(seen.get(mails.length) ?? []), at])
        assert.equal(new Set(mails.map((mail) => field('Message-ID', mail))).size, 1, at)
        assert.equal(new Set(mails.map(tokenIn)).size, 1, at)
        assert.equal(await waiting(), 0, at)
      }
    }
    assert.deepEqual([...seen.keys()].sort(), [1, 2], JSON.stringify([...seen]))
    // Before and in the transaction that records that the MTA has accepted the mail.
    for (const at of seen.get(2) ?? []) assert.match(at, /^(before|in) transaction/)
    assert.equal(seen.get(2)?.length, 2, JSON.stringify([...seen]))
  })

  test('and wakes up after its lease was taken over changes nothing', async () => {
    await empty()
    const email = await invite()
    const stalled: SystemMailDeps = {
      ...deps,
      systemMail: {
        isUnavailable: false,
        async send() {
          await time.pass(5)
          await round()
          return { kind: 'refused', isPermanent: true, status: '5.0.0', host: 'late', reply: '550 late' }
        },
      },
    }
    const other = new VirtualTime(database)
    await other.set(time.at)
    await round({ ...stalled, db: other.db })
    assert.equal(mailsTo(email).length, 1)
    assert.deepEqual(await rows(), [{ kind: 'invitation', outcome: 'sent', attempts: 2, status: null }])
  })
})

describe('an MTA that does not accept mail', () => {
  test('for a day delays mail, and then each is sent once', async () => {
    await empty()
    const emails = [await invite(), await invite()]
    inbox.refuseWith(451)
    const before = await counted('invitation', 'deferred')
    for (let minutes = 0; minutes < 24 * 60; minutes += 20) {
      await round()
      await time.pass(20)
    }
    inbox.refuseWith(null)
    assert.equal(await waiting(), 2)
    // At most every 15 minutes, and the rounds are 20 minutes apart.
    assert.equal((await counted('invitation', 'deferred')) - before, 2 * 72)
    await round()
    assert.deepEqual(
      emails.map((email) => mailsTo(email).length),
      [1, 1],
    )
  })

  test('is tried less and less often', async () => {
    await empty()
    await invite()
    inbox.refuseWith(451)
    const attempts: number[] = []
    for (let minute = 0; minute < 60; minute++) {
      await round()
      attempts.push((await rows())[0]?.attempts ?? 0)
      await time.pass(1)
    }
    inbox.refuseWith(null)
    const at = attempts.flatMap((count, minute) => (count === (attempts[minute - 1] ?? 0) ? [] : [minute]))
    assert.deepEqual(at, [0, 1, 3, 8, 18, 33, 48])
  })

  test('at all is tried with one mail in a round, and the others stay due', async () => {
    await empty()
    for (let n = 0; n < 8; n++) await invite()
    let calls = 0
    const unreachable: SystemMailDeps = {
      ...deps,
      systemMail: {
        isUnavailable: false,
        async send() {
          calls++
          return { kind: 'unreachable', host: 'mta', detail: 'connection refused', mayBeSent: false }
        },
      },
    }
    await round(unreachable)
    assert.ok(calls <= 4, 'at most those that are sent concurrently')
    assert.equal((await rows('attempts = 0')).length, 8 - calls)
    await round({ ...deps, systemMail: { ...sender, isUnavailable: true } })
    assert.equal((await rows('attempts = 0')).length, 8 - calls, 'nothing is claimed')
    await round()
    assert.equal(await waiting(), calls)
    await time.pass(5)
    await round()
    assert.equal(await waiting(), 0)
  })

  test('until the mail is of no use any more lets it expire, which is logged and counted', async () => {
    await empty()
    await invite()
    const before = await counted('invitation', 'expired')
    await time.pass(15 * 24 * 60)
    await round()
    assert.deepEqual(await rows(), [{ kind: 'invitation', outcome: 'expired', attempts: 0, status: null }])
    assert.equal(await counted('invitation', 'expired'), before + 1)
    assert.match(api.logLines.join('\n'), /system mail could not be sent in time/)
  })

  test('ever is recorded with its status, and the mail is not sent again', async () => {
    await empty()
    await time.set(new Date())
    const email = await invite()
    inbox.refuseWith(550)
    await round()
    inbox.refuseWith(null)
    await time.pass(60)
    await round()
    assert.deepEqual(mailsTo(email), [])
    assert.deepEqual(
      (await rows()).map(({ outcome }) => outcome),
      ['rejected'],
    )
    assert.match(api.logLines.join('\n'), /system mail permanently rejected/)
  })
})

test('a mail that cannot be composed does not delay the others', async () => {
  await empty()
  await time.set(new Date())
  await invite()
  await make.makeIntervention(project.id, { kind: 'warn', reason })
  await time.pass(1)
  await round({ ...deps, invitationKey: undefined as never }, 4)
  assert.deepEqual(new Set((await rows('outcome is null')).map(({ kind }) => kind)), new Set(['invitation']))
  assert.match(api.logLines.join('\n'), /system mail could not be composed, will retry/)
  await time.pass(5)
  await round()
  assert.equal(await waiting(), 0)
})

test('finished mail is deleted after 30 days', async () => {
  await empty()
  await invite()
  await time.pass(10)
  await round()
  await time.pass(29 * 24 * 60)
  assert.equal(await time.db.transaction(purgeSystemMails), 0)
  await time.pass(2 * 24 * 60)
  assert.equal(await time.db.transaction(purgeSystemMails), 1)
})
