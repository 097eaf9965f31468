import { fork } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  circumstances,
  cpuSeconds,
  machineAtRest,
  machineCpuSeconds,
  median,
  spread,
  table,
} from './figures.ts'
import { makeLetter } from './letter.ts'
import { startPostern } from './postern.ts'
import { forgetMail, queueMails } from './queue.ts'
import { makeSenders, type Sender } from './senders.ts'
import { startSink } from './sink.ts'

/**
 * `npm run bench:dispatch`: how many mails `postern worker` signs and hands over per second, against nodemailer's own
 * pooled transport doing so with the same mails, to the same sink in the same run. README.md beside this file says what
 * the figures mean.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    mails: { type: 'string', default: '5000' },
    'warm-up': { type: 'string', default: '1500' },
    senders: { type: 'string', default: '1' },
    'strangers-at-most': { type: 'string', default: 'Infinity' },
    profile: { type: 'string' },
    'worker-alone': { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const mails = Number(options.mails)
// The first seconds of a process are spent compiling.
const warmUp = Number(options['warm-up'])
const total = warmUp + mails
const strangersAtMost = Number(options['strangers-at-most'])
const goal = 0.7
/** What Postern opens to one MTA, and how often it goes on in the same session. */
const pool = { sessions: 20, mailsPerSession: 200 }

interface Measured {
  perSecond: number
  /** Of whoever sends, per mail. */
  cpuMs: number
  postgresCpuMs: number
  strangersCores: number
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern()
const sink = await startSink(path.join(postern.directory, 'received'))
const letter = makeLetter()
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
try {
  const senders = await makeSenders(postern, Number(options.senders))
  const turns: { worker: Measured; nodemailer: Measured }[] = []
  let alone = 0
  while (turns.length < rounds) {
    await machineAtRest(strangersAtMost)
    const worker = await measureWorker(senders)
    if (options['worker-alone']) {
      // For a profile. There is nothing to compare with, so there is no ratio and no row in the table.
      say(`worker ${figures(worker)}, alone`)
      if (++alone === rounds) break
      continue
    }
    const nodemailer = await measureNodemailer()
    const isDisturbed = [worker, nodemailer].some(({ strangersCores }) => strangersCores > strangersAtMost)
    if (!isDisturbed) turns.push({ worker, nodemailer })
    say(
      `worker ${figures(worker)}, nodemailer ${figures(nodemailer)}: ${ratioOf({ worker, nodemailer }).toFixed(2)}`,
    )
  }
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${rounds} rounds of ${mails} mails of ${letter.text.length + letter.html.length} bytes each, behind ${warmUp} to warm up;`,
  )
  say(
    'medians (least–most); processor time in ms per mail, and in cores for whatever else ran on the machine.\n',
  )
  const head = ['', 'what', 'worker mails/s', 'nodemailer mails/s', 'ratio', 'goal']
  const rows = turns.length > 0 ? [tableRow(turns)] : []
  say(table([...head, 'CPU: worker', 'PostgreSQL', 'nodemailer', 'strangers'], rows))
} finally {
  sink.stop()
  await postern.stop()
}

async function measureWorker(senders: Sender[]): Promise<Measured> {
  await forgetMail(postern)
  await sink.empty()
  const ids = new Set<string>()
  for (const sender of senders) {
    for (const id of await queueMails(postern, sender, letter, Math.ceil(total / senders.length))) ids.add(id)
  }
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
  const worker = await postern.start('worker', {
    environment: { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` },
    nodeOptions: options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : [],
  })
  const result = await measured(worker.pid, async () => {
    await sink.until(ids.size, 30_000)
    await untilEmpty()
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
    JSON.stringify({ port: sink.port, ...pool, count: total, domain, privateKey: pem, letter }),
  )
  const child = fork(path.join(import.meta.dirname, 'nodemailer-process.ts'), [file])
  const ended = once(child, 'exit')
  const result = await measured(child.pid ?? 0, () => sink.until(total, 30_000))
  child.disconnect()
  await ended
  return result
}

/** Whoever measures starts when the sender is there, and stops when it has nothing more to do. */
async function measured(pid: number, work: () => Promise<void>): Promise<Measured> {
  const used = async () => ({
    sender: await cpuSeconds(pid),
    postgres: await cpuSeconds(postern.pids.postgres, true),
    others:
      (await cpuSeconds(process.pid)) + (await cpuSeconds(sink.pid)) + (await cpuSeconds(postern.pids.api)),
    machine: await machineCpuSeconds(),
  })
  const [before, startedAt] = [await used(), performance.now()]
  await work()
  const [after, seconds] = [await used(), (performance.now() - startedAt) / 1000]
  const by = (who: keyof typeof before): number => after[who] - before[who]
  const times = (await sink.read()).map(({ at }) => at).toSorted((a, b) => a - b)
  const [first = 0, last = 0] = [times[warmUp - 1], times.at(-1)]
  return {
    perSecond: (times.length - warmUp) / ((last - first) / 1000),
    cpuMs: (by('sender') * 1000) / times.length,
    postgresCpuMs: (by('postgres') * 1000) / times.length,
    strangersCores: Math.max(0, (by('machine') - by('sender') - by('postgres') - by('others')) / seconds),
  }
}

/** The sink has a mail before the worker has written down that it was sent. */
async function untilEmpty(): Promise<void> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(50)) {
    const { rowCount } = await postern.superuser.query('select from mail.dispatch limit 1')
    if (rowCount === 0) return
  }
  throw new Error('All mail was received, and some of it is still to be sent.')
}

function figures({ perSecond, strangersCores }: Measured): string {
  return `${perSecond.toFixed(0)}/s (strangers: ${strangersCores.toFixed(1)} cores)`
}

function ratioOf(turn: { worker: Measured; nodemailer: Measured }): number {
  return turn.worker.perSecond / turn.nodemailer.perSecond
}

function tableRow(turns: { worker: Measured; nodemailer: Measured }[]): string[] {
  const [worker, nodemailer] = [turns.map((turn) => turn.worker), turns.map((turn) => turn.nodemailer)]
  const of = (halves: Measured[], pick: (half: Measured) => number, digits: number): string =>
    spread(halves.map(pick), digits)
  const ratios = turns.map(ratioOf)
  return [
    'S6',
    'hand-over to a local sink',
    of(worker, ({ perSecond }) => perSecond, 0),
    of(nodemailer, ({ perSecond }) => perSecond, 0),
    `${spread(ratios, 2)}${median(ratios) >= goal ? '' : ' **missed**'}`,
    `≥ ${goal}`,
    of(worker, ({ cpuMs }) => cpuMs, 2),
    of(worker, ({ postgresCpuMs }) => postgresCpuMs, 2),
    of(nodemailer, ({ cpuMs }) => cpuMs, 2),
    of([...worker, ...nodemailer], ({ strangersCores }) => strangersCores, 1),
  ]
}
