import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeVerp } from '../../../formats/verp.ts'
import { type PastedMail, pastedKinds, pastedText } from '../../../testing/fixtures/pasted-texts.ts'
import { openCells, openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { verpKeysOf } from '../feedback/match-bounce.ts'
import { traceText } from './trace.ts'

/** Mail is found from what a person pastes. `POSTERN_TEST_CASES` sets the number of messages and of forgeries. */
const cases = Number(process.env['POSTERN_TEST_CASES'] ?? 40)
const chance = new Chance(seed)
const database = await testDatabase()
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const deps = { db: openDatabase(database).as('admin'), cells: openCells(database), keys }

/** Messages of a hundred projects, spread over the partitions, with an attempt each. */
async function makeMails(count: number): Promise<PastedMail[]> {
  const rows = await database.query<PastedMail & { projectId: string }>(
    `with made as (
       insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes, created_at)
       select postern.uuid7(at), 1 + floor(random() * 100), 1, 'news@customer.example', 1, 100, at
         from (select date_trunc('day', postern.now()) + (random() * 14 - 1) * interval '1 day' as at
                 from generate_series(1, $1)) as times
       returning id, project_id, shard, created_at
     ), named as (
       insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       select id, 0, project_id, 'to', 'Person-' || substr(id::text, 20) || '@Example.net', 'delivered' from made
       returning message_id, address
     ), tried as (
       insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, queue_id, outcome)
       select id, 0, 1, project_id, 'service', '4b' || upper(translate(substr(id::text, 20), '-', 'Z')), 'sent' from made
       returning message_id, queue_id
     )
     select project_id as "projectId", shard, id as "messageId", 0 as "recipientNo", address,
            created_at as "createdAt", queue_id as "queueId"
       from made join named on named.message_id = id join tried on tried.message_id = id`,
    [count],
  )
  return rows.map((row) => ({ ...row, projectId: Number(row.projectId) }))
}

const mails = await makeMails(cases)

const flipped = (token: string): string => {
  const at = 7 + chance.below(token.length - 7)
  const other = [...'abcdefghijklmnopqrstuvwxyz234567'].filter((letter) => letter !== token[at])
  return token.slice(0, at) + chance.pick(other) + token.slice(at + 1)
}

describe('a message is found', () => {
  for (const kind of pastedKinds) {
    test(`from ${kind}, and is certain only with a signed reference`, async () => {
      for (const mail of mails) {
        const { text, isSigned } = await pastedText(keys, mail, kind)
        const { data, unreachable_cells, question } = await traceText(deps, text)
        const [found, ...others] = data
        assert.deepEqual(others, [], text)
        assert.deepEqual(
          [found?.message_id, found?.project_id, found?.is_certain],
          [mail.messageId, mail.projectId, isSigned],
          text,
        )
        assert.deepEqual(found?.recipient, { no: 0, address: mail.address, status: 'delivered' })
        assert.equal(found?.created_at, mail.createdAt.toISOString())
        assert.deepEqual(unreachable_cells, [])
        assert.doesNotMatch(question, /bounce-/)
      }
    })
  }

  test('by each kind of reference in one text, each message once, certain ones first', async () => {
    const [one, two, three] = mails
    assert.ok(one && two && three)
    const token = makeVerp(keys, { ...one, attempt: 1 })
    const ids = [one, three].map(({ messageId }) => `<${messageId}@customer.example>`)
    const text = [`id ${two.queueId}`, ...ids, `Return-Path: <${token}@bounces.customer.example>`].join('\n')
    const { data, question } = await traceText(deps, text)
    assert.deepEqual(
      data.map(({ message_id, matched_by }) => [message_id, matched_by]),
      [
        [one.messageId, 'return_path'],
        [three.messageId, 'message_id'],
        [two.messageId, 'queue_id'],
      ],
    )
    assert.equal(
      question,
      `signed ${one.messageId} recipient 0, message ${one.messageId}, message ${three.messageId}, queue id ${two.queueId}`,
    )
  })

  test('without its recipient if the reference does not name one of several', async () => {
    const [mail = assert.fail()] = await makeMails(1)
    await database.query('update mail.messages set recipient_count = 2 where id = $1', [mail.messageId])
    await database.query(
      `insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       values ($1, 1, $2, 'cc', 'second@example.net', 'bounced')`,
      [mail.messageId, mail.projectId],
    )
    const recipientFor = async (text: string) =>
      (await traceText(deps, text)).data.map((found) => found.recipient)
    assert.deepEqual(await recipientFor(`<${mail.messageId}@customer.example>`), [null])
    assert.deepEqual(await recipientFor(`Original-Envelope-Id: ${mail.messageId}.1.1`), [
      { no: 1, address: 'second@example.net', status: 'bounced' },
    ])
    const token = makeVerp(keys, { ...mail, recipientNo: 1, attempt: 1 })
    assert.deepEqual(await recipientFor(`${token} <${mail.messageId}@customer.example>`), [
      { no: 1, address: 'second@example.net', status: 'bounced' },
    ])
  })

  test('on the given day only', async () => {
    const [mail = assert.fail()] = mails
    const day = (offset: number) =>
      new Date(mail.createdAt.getTime() + offset * 24 * 3_600_000).toISOString().slice(0, 10)
    const found = async (text: string) => (await traceText(deps, text)).data.length
    assert.equal(await found(`${mail.address} ${day(0)}`), 1)
    assert.equal(await found(`${mail.address} ${day(3)}`), 0)
    assert.equal(await found(`${mail.address} ${day(-3)}`), 0)
    assert.equal(await found(mail.address), 1)
  })
})

describe('a forged reference', () => {
  test(`is never believed (seed ${seed})`, async () => {
    const strangers = verpKeysOf([{ id: '1', key: randomBytes(32) }])
    const forgeries = Array.from({ length: cases }, (_none, n) => {
      const mail = mails[n % mails.length] ?? assert.fail()
      const real = makeVerp(keys, { ...mail, attempt: 1 })
      return chance.pick([
        () => flipped(real),
        () => makeVerp(strangers, { ...mail, attempt: 1 }),
        () => `bounce-${Array.from({ length: 48 }, () => chance.pick([...'abcxyz234567'])).join('')}`,
      ])()
    })
    for (let at = 0; at < forgeries.length; at += 500) {
      const part = forgeries.slice(at, at + 500)
      const text = part.map((token) => `Return-Path: <${token}@bounces.customer.example>`).join('\n')
      assert.deepEqual((await traceText(deps, text)).data, [])
    }
  })
})

describe('a hostile text', () => {
  test('has at most fifty references looked up', async () => {
    const many = (part: (n: number) => string) =>
      Array.from({ length: 500 }, (_none, n) => part(n)).join('\n')
    const ids = many((n) => `0199000${n % 10}-0000-7000-8000-${String(n).padStart(12, '0')}`)
    const { data, question } = await traceText(deps, `${ids}\n${many((n) => `id queue${n}`)}`)
    assert.deepEqual(data, [])
    assert.equal(question.split(', ').length, 50)
    const addresses = await traceText(
      deps,
      many((n) => `to: person${n}@example.net 2026-11-${10 + (n % 20)}`),
    )
    assert.ok(addresses.question.split(', ').length <= 10)
    assert.equal((await traceText(deps, 'x')).question, 'no reference recognized')
  })
})
