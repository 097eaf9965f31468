import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { cpuSeconds } from './figures.ts'
import type { Journey } from './journey-postern.ts'
import type { SampleMessage } from './sample-message.ts'
import { startSink } from './sink.ts'

const exec = promisify(execFile)
/** As many as Postfix opens to one destination (default_destination_concurrency_limit). */
const sessions = 20
const silenceMs = 120_000
const program = '/usr/sbin/smtp-source'

/**
 * Postfix with the production configuration. `smtp-source` sends messages to it, and it relays them to a sink.
 * Only Postfix's processes are counted, including those that have exited.
 */
export async function openPostfixJourney(sampleMessage: SampleMessage): Promise<Journey> {
  const directory = await mkdtemp(path.join(tmpdir(), 'postern-journey-'))
  const messageFile = path.join(directory, 'message')
  await writeFile(messageFile, composeMessage(sampleMessage))
  const sink = await startSink(path.join(directory, 'received'))
  // No reports are requested, so nothing listens on the port for reports.
  const postfix = await Postfix.keep({
    sinkPort: sink.port,
    feedbackPort: await steadyPort(),
    delayWarningSeconds: 0,
  })
  let sent = 0
  return {
    async travel(count) {
      const before = await cpuSeconds(postfix.masterPid, true)
      await exec(program, [
        ...['-s', String(sessions), '-m', String(count), '-F', messageFile],
        ...['-f', 'shop@sender1.example.com', '-t', 'ada@example.net', `inet:127.0.0.1:${postfix.port}`],
      ])
      sent += count
      await sink.until(sent, silenceMs)
      while ((await postfix.queue()).length > 0) await sleep(100)
      return { Postfix: (((await cpuSeconds(postfix.masterPid, true)) - before) * 1000) / count }
    },
    async close() {
      await postfix.remove()
      sink.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The message as Postern would compose it, except for the signature. smtp-source writes the line endings. */
function composeMessage({ subject, text, html }: SampleMessage): string {
  return [
    'From: Shop <shop@sender1.example.com>',
    'To: ada@example.net',
    `Subject: ${subject}`,
    'Message-ID: <journey@sender1.example.com>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary="part"',
    '',
    '--part',
    'Content-Type: text/plain; charset=utf-8',
    '',
    text,
    '--part',
    'Content-Type: text/html; charset=utf-8',
    '',
    html,
    '--part--',
    '',
  ].join('\n')
}
