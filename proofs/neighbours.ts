import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { circumstances, table } from '../bench/figures.ts'
import { printResult, verdictOf } from '../bench/result.ts'
import { type Attack, Attacker } from './neighbours/attack.ts'
import { cpu } from './neighbours/cpu.ts'
import { fanout } from './neighbours/fanout.ts'
import { fbl } from './neighbours/fbl.ts'
import { inbound } from './neighbours/inbound.ts'
import { large } from './neighbours/large.ts'
import { convoy } from './neighbours/lock-convoy.ts'
import { memory } from './neighbours/memory.ts'
import { projects } from './neighbours/projects.ts'
import { type Quiet, startQuiet } from './neighbours/quiet.ts'
import { resend } from './neighbours/resend.ts'
import { faultsOf, lateOf, type Phase, type Received, type Result, resultOf } from './neighbours/result.ts'
import { makeTenants, type Stage, startStage, type Tenant } from './neighbours/stage.ts'
import { storage } from './neighbours/storage.ts'
import { countsOnlyOption, reportTimeViolations, say, waitMs } from './run.ts'

/**
 * `npm run prove:neighbours`: one tenant attacks, and another, quiet tenant must not be affected. proofs/README.md
 * lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    'phase-ms': { type: 'string', default: '20000' },
    'pause-ms': { type: 'string', default: '200' },
    'beside-only': { type: 'boolean', default: false },
    'ratio-at-most': { type: 'string', default: '2' },
    endpoints: { type: 'string', default: '20000' },
    'fanout-endpoints': { type: 'string', default: '3000' },
    'batch-mails': { type: 'string', default: '200' },
    bodies: { type: 'string', default: '40' },
    'body-bytes': { type: 'string', default: String(36 * 1024 * 1024) },
    'heap-mib': { type: 'string', default: '512' },
    routes: { type: 'string', default: '40000' },
    'large-mails': { type: 'string', default: '3000' },
    'large-bytes': { type: 'string', default: '1100000' },
    lines: { type: 'string', default: '400000' },
    tags: { type: 'string', default: '50' },
    'bytes-per-day': { type: 'string', default: String(32 * 1024 * 1024) },
    ...countsOnlyOption,
  },
})
const rounds = Number(options.rounds)
const phaseMs = Number(options['phase-ms'])
const pauseMs = Number(options['pause-ms'])
const ratioAtMost = Number(options['ratio-at-most'])
const isCountsOnly = options['counts-only']
/** Omits the phases in which the quiet tenant is alone. Without them there is nothing to compare. */
const isBesideOnly = options['beside-only']
if (isBesideOnly && !isCountsOnly) throw new Error('--beside-only requires --counts-only')
/** Longer than a lease. Once a lease expires, a lost worker's messages are sent again. */
const patienceMs = waitMs(180_000, isCountsOnly)
/** The warm-up time, because new workers and connections are slow. */
const warmUpMs = Math.min(2000, phaseMs / 2)

const mails = Number(options['batch-mails'])
const all: Attack[] = [
  resend({ endpoints: Number(options.endpoints), mails }),
  fanout({ endpoints: Number(options['fanout-endpoints']), mails }),
  memory({
    bodies: Number(options.bodies),
    bytes: Number(options['body-bytes']),
    heapMib: Number(options['heap-mib']),
    holdMs: phaseMs / 3,
  }),
  convoy({ routes: Number(options.routes) }),
  projects(),
  large({ mails: Number(options['large-mails']), bytes: Number(options['large-bytes']) }),
  storage({ bytesPerDay: Number(options['bytes-per-day']), bytes: 7 * 1024 * 1024 }),
  fbl(),
  cpu({ lines: Number(options.lines) }),
  inbound({ tags: Number(options.tags) }),
]
const named = options.only?.toUpperCase().split(',')
const attacks = all.filter(
  ({ id, name }) => named?.some((one) => [id, name.toUpperCase()].includes(one)) ?? true,
)
if (attacks.length === 0)
  throw new Error(`--only: one or more of ${all.flatMap(({ id, name }) => [id, name]).join(',')}`)

interface Tried {
  attack: Attack
  attacker: Attacker
  result: Result
  faults: string[]
}

const stage = await startStage(patienceMs)
try {
  const [quiet, ...attackers] = await makeTenants(stage, 1 + attacks.length)
  const tried: Tried[] = []
  for (const [place, attack] of attacks.entries()) {
    const tenant = attackers[place]
    if (!quiet || !tenant) throw new Error('a tenant is missing')
    tried.push(await tryAttack(attack, new Attacker(stage, tenant), quiet))
  }
  await printResults(tried)
} finally {
  await stage.stop()
}

async function tryAttack(attack: Attack, attacker: Attacker, tenant: Tenant): Promise<Tried> {
  say(`${attack.id} ${attack.name}: ${attack.title}`)
  await stage.useApi(attack.api)
  await attack.prepare(attacker)
  await stage.sink.empty()
  const quiet = startQuiet({ url: stage.postern.url, tenant, recipients: attack.name, pauseMs })
  const phases: Phase[] = []
  try {
    for (let round = 1; round <= rounds; round++) {
      if (!isBesideOnly) phases.push(await measure(quiet, tenant, attacker, attack, 'alone'))
      phases.push(await measure(quiet, tenant, attacker, attack, 'beside'))
    }
  } finally {
    quiet.stop()
  }
  const result = resultOf(phases, await receivedBy(stage))
  return { attack, attacker, result, faults: [...faultsOf(result), ...attacker.faults] }
}

/** A phase with or without the attack. It begins with an empty queue and a new worker. */
async function measure(
  quiet: Quiet,
  tenant: Tenant,
  attacker: Attacker,
  attack: Attack,
  when: Phase['when'],
): Promise<Phase> {
  await stage.clear()
  const worker = await stage.startWorker(attack.isTogether)
  const over = new AbortController()
  const attacking = when === 'beside' ? attack.run(attacker, over.signal) : undefined
  const warmUp = await quiet.speak(warmUpMs)
  await stage.longestTaskMs()
  const measured = await quiet.speak(phaseMs)
  const longestTaskMs = await stage.longestTaskMs()
  over.abort()
  await attacking
  const left = await untilSent(tenant)
  if (left > 0) attacker.faults.push(`${left} messages of the quiet tenant were never recorded as sent`)
  await worker.stop()
  if (when === 'beside') await attack.check(attacker)
  return { when, warmUp, measured, longestTaskMs }
}

/** Waits until the queue is empty, and returns the number of messages left. */
async function untilSent({ projectId }: Tenant): Promise<number> {
  for (const deadline = Date.now() + patienceMs; ; await sleep(200)) {
    const left = await stage.count('mail.dispatch where project_id = $1', projectId)
    if (left === 0 || Date.now() > deadline) return left
  }
}

async function receivedBy({ sink }: Stage): Promise<Received[]> {
  const received = await sink.read()
  return received.map(({ messageId, recipient, at }) => ({
    id: messageId.split('@')[0] ?? '',
    recipient,
    at,
  }))
}

async function printResults(tried: readonly Tried[]): Promise<void> {
  say(`\n${await circumstances(stage.postern.superuser)};`)
  say(
    `${rounds} rounds of ${phaseMs / 1000} s ${isBesideOnly ? '' : 'without and '}with each attack; the quiet tenant sends a message and reads a list every ${pauseMs} ms.\n`,
  )
  const countsHead = [
    '',
    'attack',
    'messages',
    'lost',
    'twice',
    'requests',
    'refused',
    'caps',
    'responses to the attacker',
  ]
  say(table(countsHead, tried.map(countsRow)))
  say('\nIn ms:\n')
  const timesHead = ['', 'quiet tenant', 'alone p50', 'p99', 'beside p50', 'p99', 'ratio of p99', 'goal']
  say(table(timesHead, tried.flatMap(timesRows)))
  const together = tried.filter(({ attack }) => attack.isTogether)
  if (together.length > 0) {
    say('\nLongest event-loop delay of `postern all` in ms, as measured by the process:\n')
    say(table(['', 'alone', 'beside'], together.map(taskRow)))
  }
  say('')
  const late = tried.flatMap(({ attack, result }) =>
    lateOf(result, ratioAtMost).map((line) => `${attack.id}: ${line}`),
  )
  if (isCountsOnly && !isBesideOnly) reportTimeViolations(late)
  const faults = tried.flatMap(({ attack, faults }) => faults.map((fault) => `${attack.id}: ${fault}`))
  const verdict = [...faults, ...(isCountsOnly ? [] : late)]
  for (const fault of verdict) say(`FAULT: ${fault}`)
  say(verdict.length === 0 ? 'The quiet tenant was not affected.' : `${verdict.length} kinds of faults.`)
  if (verdict.length > 0) process.exitCode = 1
  const sum = (count: (result: Result) => number): number =>
    tried.reduce((total, { result }) => total + count(result), 0)
  printResult({
    verdict: verdictOf(faults, late),
    figures: [
      `attacks ${tried.length}, messages ${sum(({ mails }) => mails)}, lost ${sum(({ lost }) => lost.length)}, ` +
        `received twice ${sum(({ duplicates }) => duplicates.length)}, refused ${sum(({ refused }) => refused.length)}`,
      ...faults,
      ...late,
    ].join('; '),
  })
}

function countsRow({ attack, attacker, result }: Tried): string[] {
  const { mails, lost, duplicates, requests, refused } = result
  const counts = [mails, lost.length, duplicates.length, requests, refused.length].map(String)
  const answers = [...attacker.answers].map(([answer, times]) => `${times} × ${answer}`)
  return [attack.id, attack.title, ...counts, attacker.refusals.join('; '), answers.join(', ')]
}

function shown(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '–'
}

function taskRow({ attack, result: { longestTask } }: Tried): string[] {
  return [`${attack.id} ${attack.name}`, shown(longestTask.alone, 0), shown(longestTask.beside, 0)]
}

function timesRows({ attack, result }: Tried): string[][] {
  return result.times.map(({ kind, isCompared, alone, beside, ratio }) => [
    ...[attack.id, kind],
    ...[alone.p50, alone.p99, beside.p50, beside.p99].map((ms) => shown(ms, 0)),
    ...[shown(ratio, 2), isCompared ? `≤ ${ratioAtMost}` : ''],
  ])
}
