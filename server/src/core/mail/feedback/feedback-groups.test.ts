import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import pg from 'pg'
import { mailRows, type TestMail } from '../../../testing/fixtures/mail-rows.ts'
import { openCells, testDatabase } from '../../../testing/harness/database.ts'
import { feedbackIn } from '../../../testing/harness/feedback.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import { digestBytes, type Feedback } from './feedback.ts'

const database = await testDatabase()
const groups = feedbackIn(openCells(database))
const { makeMail, stateOf, countsOf } = mailRows(database)

let projects = 21_000
const newMails = (count: number, project = ++projects) =>
  Promise.all(Array.from({ length: count }, () => makeMail(project)))

const reportOf = ({ shard, messageId, recipientNo }: TestMail): Feedback => ({
  ...{ shard, messageId, recipientNo, attempt: 1 },
  ...{ kind: 'delivered', status: '2.0.0', diagnostic: null, digest: randomBytes(digestBytes) },
})

describe('reports that arrive together', () => {
  test('take fewer statements than there are reports', async (t) => {
    const mails = await newMails(60)
    const statements = recordStatements(t)
    const outcomes = await Promise.all(mails.map((mail) => groups.apply(reportOf(mail))))
    assert.deepEqual(new Set(outcomes), new Set(['applied']))
    assert.ok(statements.count < mails.length / 3, `${statements.count} statements`)
  })

  test('are applied although one of them makes its transaction fail', async () => {
    const [bad] = await newMails(1)
    const good = await newMails(30)
    if (!bad) assert.fail()
    await database.query(
      `alter table mail.events add constraint planted check (project_id <> ${bad.projectId}) not valid`,
    )
    const outcomes = await Promise.allSettled([...good, bad].map((mail) => groups.apply(reportOf(mail))))
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      [...good.map(() => 'fulfilled'), 'rejected'],
    )
    assert.deepEqual(await countsOf(good[0]?.projectId ?? 0), { delivered: 30 })
    assert.equal((await stateOf(bad)).status, 'sent', 'nothing of the failed report is stored')
    await database.query('alter table mail.events drop constraint planted')
    assert.equal(await groups.apply(reportOf(bad)), 'applied', 'the sender retries it')
  })

  test('do not wait for one about a locked recipient', async () => {
    const mails = await newMails(20)
    const [locked, ...others] = mails
    if (!locked) assert.fail()
    const client = new pg.Client(database.superuserUrl)
    await client.connect()
    try {
      await client.query('begin')
      await client.query('select from mail.recipients where message_id = $1 for update', [locked.messageId])
      const report = reportOf(locked)
      const held = groups.apply(report).catch(() => 'refused')
      const outcomes = await Promise.all(others.map((mail) => groups.apply(reportOf(mail))))
      assert.deepEqual(new Set(outcomes), new Set(['applied']), 'while the row is locked')
      await client.query('commit')
      // On a very slow machine, its own wait may have timed out.
      if ((await held) === 'refused') await groups.apply(report)
      assert.equal((await stateOf(locked)).status, 'delivered')
    } finally {
      await client.end()
    }
  })

  test('are applied once, although each is sent several times', async () => {
    const mails = await newMails(20)
    const reports = mails.map(reportOf)
    const outcomes = await Promise.all(
      [...reports, ...reports, ...reports].map((report) => groups.apply(report)),
    )
    assert.equal(outcomes.filter((outcome) => outcome === 'applied').length, 20)
    assert.equal(outcomes.filter((outcome) => outcome === 'repeated').length, 40)
    assert.deepEqual(await countsOf(mails[0]?.projectId ?? 0), { delivered: 20 })
  })
})
