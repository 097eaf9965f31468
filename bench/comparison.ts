import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, machineCpuSeconds, median, spread, table, waitForIdleMachine } from './figures.ts'
import type { Postern } from './postern.ts'
import { printRatio } from './result.ts'

/** Compares `postern worker` with another program that does the same work. The two run alternately on one machine. */
export interface Comparison {
  /** The id in bench/RESULTS.md. */
  no: string
  what: string
  /** The unit, such as `messages`. */
  things: string
  rival: string
  /** The minimum ratio to the other program. */
  goal: number
  rounds: number
  /** A round does not count if other processes use more cores than this. */
  otherLoadAtMost: number
  /** For profiling. Without a comparison, no ratio is computed and no table row is written. */
  isWorkerAlone: boolean
  measureWorker(): Promise<Measured>
  measureRival(): Promise<Measured>
}

export interface Measured {
  perSecond: number
  /** The sender's CPU time per item. */
  cpuMs: number
  postgresCpuMs: number
  otherCores: number
}

interface Turn {
  worker: Measured
  rival: Measured
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)

export async function compete(comparison: Comparison): Promise<Turn[]> {
  const { rounds, rival: name, otherLoadAtMost, isWorkerAlone } = comparison
  const turns: Turn[] = []
  for (let round = 0; turns.length < rounds && round < 10 * rounds; round++) {
    await waitForIdleMachine(otherLoadAtMost)
    const worker = await comparison.measureWorker()
    if (isWorkerAlone) {
      say(`worker ${figures(worker)}, alone`)
      if (round + 1 === rounds) break
      continue
    }
    const rival = await comparison.measureRival()
    const isDisturbed = [worker, rival].some(({ otherCores }) => otherCores > otherLoadAtMost)
    if (!isDisturbed) turns.push({ worker, rival })
    say(`worker ${figures(worker)}, ${name} ${figures(rival)}: ${ratioOf({ worker, rival }).toFixed(2)}`)
  }
  return turns
}

/** The results table, with a description of its figures. */
export function outcomeOf(
  { no, what, things, rival: name, goal }: Comparison,
  turns: readonly Turn[],
): string {
  const thing = things.replace(/s$/, '')
  const [worker, rival] = [turns.map((turn) => turn.worker), turns.map((turn) => turn.rival)]
  const of = (halves: Measured[], pick: (half: Measured) => number, digits: number): string =>
    spread(halves.map(pick), digits)
  const ratios = turns.map(ratioOf)
  const row = () => [
    no,
    what,
    of(worker, ({ perSecond }) => perSecond, 0),
    of(rival, ({ perSecond }) => perSecond, 0),
    `${spread(ratios, 2)}${median(ratios) >= goal ? '' : ' **missed**'}`,
    `≥ ${goal}`,
    of(worker, ({ cpuMs }) => cpuMs, 2),
    of(worker, ({ postgresCpuMs }) => postgresCpuMs, 2),
    of(rival, ({ cpuMs }) => cpuMs, 2),
    of([...worker, ...rival], ({ otherCores }) => otherCores, 1),
  ]
  const head = ['', 'what', `worker ${things}/s`, `${name} ${things}/s`, 'ratio', 'goal']
  return [
    `medians (min–max); CPU time in ms per ${thing}, and in cores for other load on the machine.\n`,
    table([...head, 'CPU: worker', 'PostgreSQL', name, 'other load'], turns.length > 0 ? [row()] : []),
  ].join('\n')
}

/** Prints the result of the row; without a comparison, there is none. */
export function printOutcome({ no, rival, goal }: Comparison, turns: readonly Turn[]): void {
  if (turns.length > 0) printRatio(no, `ratio to ${rival}`, turns.map(ratioOf), { atLeast: goal })
}

export interface Arena {
  postern: Postern
  /** The receiver's process id. */
  receiverPid: number
  /** The number of initial items to ignore, because a process spends its first seconds compiling. */
  warmUp: number
  /** The arrival times, in any order. */
  times(): Promise<number[]>
}

/** The measurement starts when the sender is ready and stops when it has finished. */
export async function measured(arena: Arena, pid: number, work: () => Promise<void>): Promise<Measured> {
  const { postern, receiverPid, warmUp } = arena
  const used = async () => ({
    sender: await cpuSeconds(pid),
    postgres: await cpuSeconds(postern.pids.postgres, true),
    others:
      (await cpuSeconds(process.pid)) +
      (await cpuSeconds(receiverPid)) +
      (await cpuSeconds(postern.pids.api)),
    machine: await machineCpuSeconds(),
  })
  const [before, startedAt] = [await used(), performance.now()]
  await work()
  const [after, seconds] = [await used(), (performance.now() - startedAt) / 1000]
  const by = (who: keyof typeof before): number => after[who] - before[who]
  const times = (await arena.times()).toSorted((a, b) => a - b)
  const [first = 0, last = 0] = [times[warmUp - 1], times.at(-1)]
  return {
    perSecond: (times.length - warmUp) / ((last - first) / 1000),
    cpuMs: (by('sender') * 1000) / times.length,
    postgresCpuMs: (by('postgres') * 1000) / times.length,
    otherCores: Math.max(0, (by('machine') - by('sender') - by('postgres') - by('others')) / seconds),
  }
}

/** Needed because the receiver gets an item before the worker has recorded it as sent. */
export async function untilEmpty({ superuser }: Postern, queue: string): Promise<void> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(50)) {
    const { rowCount } = await superuser.query(`select from ${queue} limit 1`)
    if (rowCount === 0) return
  }
  throw new Error(`Everything was received, but ${queue} is not empty.`)
}

const figures = ({ perSecond, cpuMs, postgresCpuMs, otherCores }: Measured): string =>
  `${perSecond.toFixed(0)}/s (CPU ${cpuMs.toFixed(2)} ms, PostgreSQL ${postgresCpuMs.toFixed(2)}, other load ${otherCores.toFixed(1)} cores)`

const ratioOf = ({ worker, rival }: Turn): number => worker.perSecond / rival.perSecond
