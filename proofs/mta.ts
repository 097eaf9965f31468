import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { FaultyProxy } from '../server/src/testing/peers/faulty-proxy.ts'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import type { Promised } from './check.ts'
import { mailsInQueue, postfixAsReporter } from './postfix-queue.ts'
import { Chance } from './random.ts'
import { waitForRecovery } from './recovery.ts'
import {
  countsOnlyOption,
  type FaultReport,
  leaseReader,
  prove,
  type Stage,
  say,
  seedOf,
  waitMs,
} from './run.ts'

/**
 * `npm run prove:mta`: a real Postfix runs between the worker and the sink and reports to the intake. Under load, some
 * or all of its processes are killed, stopped or paused; then the intake is stopped. proofs/README.md lists the
 * criteria.
 */
const { values: options } = parseArgs({
  options: {
    faults: { type: 'string', default: '50' },
    'listener-down': { type: 'string', default: '600' },
    'longest-stop-ms': { type: 'string', default: '25000' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '4' },
    'pause-ms': { type: 'string', default: '800' },
    'skip-waits': { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const faults = Number(options.faults)
const listenerDownMs = 1000 * Number(options['listener-down'])
const longestStopMs = Number(options['longest-stop-ms'])
const isCountsOnly = options['counts-only']

/** A fault in Postfix. `noted` is called while the fault is in effect. */
type Mishap = (postfix: Postfix, noted: () => Promise<void>, chance: Chance) => Promise<void>

const mishaps: Record<string, Mishap> = {
  async 'killed as a whole'(mta, noted) {
    await mta.kill()
    await noted()
    await mta.start()
  },
  async 'master killed'(mta, noted) {
    await mta.signal('master', 'SIGKILL')
    // The other processes finish their work but accept nothing new.
    await sleep(500)
    await mta.kill()
    await noted()
    await mta.start()
  },
  async stopped(mta, noted) {
    await mta.stop()
    await noted()
    await mta.start()
  },
  async 'smtpd killed'(mta, noted) {
    await mta.signal('smtpd', 'SIGKILL')
    await noted()
  },
  async 'cleanup killed'(mta, noted) {
    await mta.signal('cleanup', 'SIGKILL')
    await noted()
  },
  async 'smtpd halted'(mta, noted, chance) {
    await mta.signal('smtpd', 'SIGSTOP')
    await noted()
    // Sometimes longer than the worker's timeout.
    await sleep(chance.between(500, longestStopMs))
    await mta.signal('smtpd', 'SIGCONT')
  },
}

let line: FaultyProxy | undefined
let postfix: Postfix | undefined
try {
  await prove({
    title: `${faults} MTA faults, and ${listenerDownMs / 1000} s without an intake`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']), bytes: 60_000 },
    skipsWaits: options['skip-waits'],
    isCountsOnly,
    drainMs: 300_000,
    async lay({ sink, intakePort }) {
      postfix = await Postfix.keep({
        sinkPort: sink.port,
        feedbackPort: intakePort,
        delayWarningSeconds: 0,
        backoffSeconds: 5,
      })
      // Makes the transfer of a message take more than a tenth of a second.
      line = await FaultyProxy.keep(postfix.port)
      line.bytesPerSecond = 500_000
      return { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${line.port}` }
    },
    reports: ({ sink }) => postfixAsReporter(theMta(), sink),
    injectFaults,
  })
} finally {
  await line?.close()
  await postfix?.remove()
}

function theMta(): Postfix {
  if (!postfix) throw new Error('no MTA')
  return postfix
}

async function injectFaults(stage: Stage): Promise<FaultReport> {
  const mta = theMta()
  const chance = new Chance(seed)
  const leased = leaseReader(stage)
  const inFlight: Promised[][] = []
  const times = new Map(Object.keys(mishaps).map((name) => [name, 0]))
  const noted = async () => {
    // Between the two reads a message can only move from the worker to Postfix.
    const handedOver = await leased()
    inFlight.push([...handedOver, ...(await mailsInQueue(mta, stage))])
  }
  for (let count = 1; count <= faults; count++) {
    await sleep(chance.between(200, 2500))
    // First injects each fault once, so that a short run covers all of them.
    const names = Object.keys(mishaps)
    const name = names[count <= names.length ? count - 1 : chance.between(0, names.length - 1)] ?? ''
    await mishaps[name]?.(mta, noted, chance)
    times.set(name, (times.get(name) ?? 0) + 1)
    if (count % 10 === 0) say(`${count} faults`)
  }
  // Waits until Postfix has mail to report on again.
  await waitForRecovery(stage, isCountsOnly)(Date.now())
  const kept = await withoutListener(stage, mta)
  return {
    lines: [
      `Postfix: ${[...times].map(([name, count]) => `${name} ${count}`).join(', ')}`,
      `no intake for ${listenerDownMs / 1000} s; Postfix queued ${kept} reports`,
    ],
    inFlight,
    faults: kept > 0 ? [] : ['Postfix queued no reports, so nothing was proved about them'],
  }
}

/** Returns the number of queued reports. With --counts-only, waits for the first of them. */
async function withoutListener({ parts, start }: Stage, mta: Postfix): Promise<number> {
  const reports = async () => (await mta.queue()).filter(({ sender }) => sender === 'MAILER-DAEMON').length
  await parts.intake?.kill()
  await sleep(listenerDownMs)
  let kept = await reports()
  const deadline = Date.now() + waitMs(0, isCountsOnly)
  while (kept === 0 && Date.now() < deadline) {
    await sleep(500)
    kept = await reports()
  }
  await start('intake')
  return kept
}
