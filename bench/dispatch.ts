import { fork } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseArgs } from 'node:util'
import {
  type Arena,
  type Comparison,
  compete,
  type Measured,
  measured,
  outcomeOf,
  printOutcome,
  untilEmpty,
} from './comparison.ts'
import { circumstances } from './figures.ts'
import { startPostern } from './postern.ts'
import { forgetMail, queueMails } from './queue.ts'
import { makeSampleMessage } from './sample-message.ts'
import { makeSenders, type Sender } from './senders.ts'
import { startSink } from './sink.ts'

/**
 * `npm run bench:dispatch`: the number of messages that `postern worker` signs and sends per second, compared with
 * nodemailer's pooled transport sending the same messages to the same sink in the same run. bench/README.md explains
 * the figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    mails: { type: 'string', default: '5000' },
    'warm-up': { type: 'string', default: '1500' },
    senders: { type: 'string', default: '1' },
    'other-load-at-most': { type: 'string', default: 'Infinity' },
    profile: { type: 'string' },
    'worker-alone': { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const mails = Number(options.mails)
const warmUp = Number(options['warm-up'])
const total = warmUp + mails
/** Postern's sessions per MTA, and messages per session. */
const pool = { sessions: 20, mailsPerSession: 200 }

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern()
const sink = await startSink(path.join(postern.directory, 'received'))
const arena: Arena = {
  ...{ postern, receiverPid: sink.pid, warmUp },
  times: async () => (await sink.read()).map(({ at }) => at),
}
const sampleMessage = makeSampleMessage()
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
try {
  const senders = await makeSenders(postern, Number(options.senders))
  const comparison: Comparison = {
    ...{ no: 'S6', what: 'hand-over to a local sink', things: 'messages', rival: 'nodemailer', goal: 1 },
    ...{ rounds, isWorkerAlone: options['worker-alone'] },
    otherLoadAtMost: Number(options['other-load-at-most']),
    measureWorker: () => measureWorker(senders),
    measureRival: measureNodemailer,
  }
  const turns = await compete(comparison)
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${rounds} rounds of ${mails} messages of ${sampleMessage.text.length + sampleMessage.html.length} bytes each, after a warm-up of ${warmUp};`,
  )
  say(outcomeOf(comparison, turns))
  printOutcome(comparison, turns)
} finally {
  sink.stop()
  await postern.stop()
}

async function measureWorker(senders: Sender[]): Promise<Measured> {
  await forgetMail(postern)
  await sink.empty()
  const ids = new Set<string>()
  for (const sender of senders) {
    for (const id of await queueMails(postern, sender, sampleMessage, Math.ceil(total / senders.length)))
      ids.add(id)
  }
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
  const worker = await postern.start('worker', {
    environment: { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` },
    nodeOptions: options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : [],
  })
  const result = await measured(arena, worker.pid, async () => {
    await sink.until(ids.size, 30_000)
    await untilEmpty(postern, 'mail.dispatch')
  })
  await worker.stop()
  const received = await sink.read()
  const isAllThere = received.every(({ messageId }) => ids.has(messageId.split('@')[0] ?? ''))
  const { rows } = await postern.superuser.query<{ status: string; count: string }>(
    'select status, count(*) from mail.recipients group by status',
  )
  if (received.length !== ids.size || !isAllThere || rows.length !== 1 || rows[0]?.status !== 'sent') {
    throw new Error(`${ids.size} were accepted, ${received.length} received; ${JSON.stringify(rows)}`)
  }
  return result
}

async function measureNodemailer(): Promise<Measured> {
  await sink.empty()
  const file = path.join(postern.directory, 'nodemailer.json')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const domain = 'sender1.example.com'
  await writeFile(
    file,
    JSON.stringify({ port: sink.port, ...pool, count: total, domain, privateKey: pem, sampleMessage }),
  )
  const child = fork(path.join(import.meta.dirname, 'nodemailer-process.ts'), [file])
  const ended = once(child, 'exit')
  const result = await measured(arena, child.pid ?? 0, () => sink.until(total, 30_000))
  child.disconnect()
  await ended
  return result
}
