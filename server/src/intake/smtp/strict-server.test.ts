import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { srsKeysOf } from '../../core/mail/feedback/srs-path.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { reportAbout } from '../../testing/fixtures/mail-reports.ts'
import { mailRows, type TestMail } from '../../testing/fixtures/mail-rows.ts'
import { localReporters, loopback, testAnalysisThreads } from '../../testing/harness/analysis-threads.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openCells, testDatabase } from '../../testing/harness/database.ts'
import { feedbackIn } from '../../testing/harness/feedback.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { SmtpClient } from '../../testing/peers/smtp-client.ts'
import { startBounces } from '../bounces/bounces.ts'
import { LineEnds } from './strict-server.ts'

// SMTP smuggling: mail data must not contain a second message or a command.

const database = await testDatabase()
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const listener = await startBounces({
  feedback: feedbackIn(openCells(database)),
  keys,
  srsKeys: srsKeysOf([{ id: '1', key: randomBytes(32) }]),
  analysisThreads: testAnalysisThreads(),
  reporters: localReporters,
  relays: loopback,
  log: createLogger('silent'),
  returnPathHost: 'bounces.example.org',
  host: '127.0.0.1',
  port: 0,
  tls: undefined,
})
cleanUp(() => listener.stop(1000))
const { makeMail, stateOf } = mailRows(database)

const open = async (): Promise<SmtpClient> => {
  const client = await SmtpClient.open(listener.port)
  cleanUp(async () => client.close())
  return client
}

/**
 * A message that contains a second message in its data. A server would accept the second message separately
 * if the data ended early.
 */
async function smuggle(end: string): Promise<{ first: TestMail; second: TestMail; raw: string }> {
  const [first, second] = [await makeMail(3000), await makeMail(3000)]
  const inner = reportAbout(keys, second, 'postfix-unknown-user')
  const outer = reportAbout(keys, first, 'postfix-relayed')
  const hidden = `MAIL FROM:<>\r\nRCPT TO:<${inner.returnPath}>\r\nDATA\r\n${inner.raw}\r\n.\r\n`
  return { first, second, raw: `${outer.raw}${end}${hidden}` }
}

const ends: Record<string, string> = {
  'LF . LF': '\n.\n',
  'LF . CR LF': '\n.\r\n',
  'CR . CR LF': '\r.\r\n',
  'CR LF . LF': '\r\n.\n',
  'CR LF . CR': '\r\n.\r',
  'CR . CR': '\r.\r',
  'LF . CR': '\n.\r',
  'CR LF NUL . CR LF': '\r\n\0.\r\n',
  'CR LF . NUL CR LF': '\r\n.\0\r\n',
  'CR NUL LF . CR LF': '\r\0\n.\r\n',
}

describe('the end of a message', () => {
  for (const [name, end] of Object.entries(ends)) {
    for (const pieces of ['at once', 'byte by byte']) {
      test(`is not ${name}, sent ${pieces}`, async () => {
        const { first, second, raw } = await smuggle(end)
        const client = await open()
        await client.begin(reportAbout(keys, first, 'postfix-relayed').returnPath)
        if (pieces === 'at once') client.write(raw)
        else for (const byte of Buffer.from(raw, 'latin1')) client.write(Buffer.of(byte))
        const reply = await client.reply()
        assert.match(
          reply ?? '',
          end.includes('\0') && !/(?<!\r)\n|\r(?!\n)/.test(end) ? /^250/ : /^521 5\.5\.2/,
        )
        // The text that follows was not executed as commands.
        await client.say('NOOP')
        assert.equal((await stateOf(second)).status, 'sent')
        client.close()
      })
    }
  }

  test('is CR LF . CR LF, and a separate message follows', async () => {
    const { first, second, raw } = await smuggle('\r\n.\r\n')
    const client = await open()
    await client.begin(reportAbout(keys, first, 'postfix-relayed').returnPath)
    client.write(raw)
    for (const expected of [/^250/, /^250/, /^250/, /^354/, /^250/]) {
      assert.match((await client.reply()) ?? '', expected)
    }
    assert.equal((await stateOf(first)).status, 'delivered')
    assert.equal((await stateOf(second)).status, 'bounced')
    client.close()
  })

  test('is not a dot-stuffed line with a single dot', async () => {
    const mail = await makeMail(3000)
    const { returnPath, raw } = reportAbout(keys, mail, 'postfix-relayed')
    const client = await open()
    await client.begin(returnPath)
    client.write('..\r')
    client.write('\n')
    client.write(`${raw}\r\n..\r\nQUIT\r\n.\r\n`)
    assert.match((await client.reply()) ?? '', /^250/)
    assert.match((await client.say('NOOP')) ?? '', /^250/)
    client.close()
  })
})

describe('a command', () => {
  test('ends in CR LF: text after a bare CR, LF or NUL is not executed', async () => {
    const mail = await makeMail(3000)
    const { returnPath, raw } = reportAbout(keys, mail, 'postfix-unknown-user')
    let injected = 0
    const commands = ['EHLO a.example', 'MAIL FROM:<>', `RCPT TO:<${returnPath}>`, 'DATA']
    for (const sign of ['\n', '\r', '\0', '\r\r\n', '\n\r']) {
      for (let at = 0; at < commands.length - 1; at++) {
        const client = await open()
        for (const line of commands.slice(0, at)) await client.say(line)
        client.write(`${commands.slice(at).join(sign)}\r\n`)
        client.write(`${raw}\r\n.\r\n`)
        const reply = await client.reply()
        if (sign !== '\0') assert.match(reply ?? '', /^521/)
        await client.say('NOOP')
        if ((await stateOf(mail)).status !== 'sent') injected++
        client.close()
      }
    }
    assert.equal(injected, 0)
  })

  test('with a bare CR, LF or NUL in its address is rejected', async () => {
    const mail = await makeMail(3000)
    const { returnPath } = reportAbout(keys, mail, 'postfix-relayed')
    for (const sign of ['\0', '\x01', '\x7f', '\t']) {
      for (const address of [
        `${sign}${returnPath}`,
        returnPath.replace('@', `${sign}@`),
        returnPath + sign,
      ]) {
        const client = await open()
        await client.say('EHLO a.example')
        await client.say('MAIL FROM:<>')
        assert.match((await client.say(`RCPT TO:<${address}>`)) ?? '', /^5/, JSON.stringify(address))
        client.close()
      }
    }
  })
})

describe('line endings', () => {
  const isRight = (text: string) => !/(?<!\r)\n|\r(?!\n)/.test(text)

  test('are checked independently of chunk boundaries', () => {
    const chance = new Chance(seed)
    let wrong = 0
    for (let n = 0; n < 20_000; n++) {
      const text = `${Array.from({ length: chance.below(12) }, () => chance.pick(['\r\n', '\r\n', 'a', '\r', '\n'])).join('')}.`
      const lines = new LineEnds()
      let isCrlf = true
      for (let at = 0; at < text.length && isCrlf; ) {
        const size = 1 + chance.below(4)
        isCrlf = lines.areCrlf(Buffer.from(text.slice(at, at + size)))
        at += size
      }
      assert.equal(isCrlf, isRight(text), `${JSON.stringify(text)}, seed ${seed}`)
      if (!isCrlf) wrong++
    }
    assert.ok(wrong > 1000 && wrong < 19_000)
  })
})
