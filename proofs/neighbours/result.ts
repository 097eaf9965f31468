import { median, percentile } from '../../bench/figures.ts'
import { check, type Promised } from '../check.ts'
import type { LoadResults, QuietRequest } from './quiet.ts'

/** A phase of an attack: the quiet tenant alone, or together with the attacker. */
export interface Phase {
  when: 'alone' | 'beside'
  /** Requests are counted, but their durations are ignored. */
  warmUp: LoadResults
  measured: LoadResults
  /** The serving process's longest event-loop delay, if measured. */
  longestTaskMs?: number
}

/** The quiet tenant's results. */
export interface Result {
  requests: number
  /** Requests that did not get a 2xx response. */
  refused: QuietRequest[]
  mails: number
  /** Accepted but never received. */
  lost: Promised[]
  /** Received more than once. */
  duplicates: Promised[]
  times: Times[]
  /** The longest event-loop delay in ms, over all phases without the attack and over all phases with it. */
  longestTask: Record<Phase['when'], number>
}

/** Durations in ms. */
export interface Times {
  kind: string
  /** Whether its ratio has a limit. */
  isCompared: boolean
  alone: Figures
  beside: Figures
  /** The ratio of the 99th percentiles. */
  ratio: number
}

interface Figures {
  p50: number
  p99: number
}

/** A message received by the MTA, with the time. */
export type Received = Promised & { at: number }

export function resultOf(phases: readonly Phase[], received: readonly Received[]): Result {
  const loadResults = phases.flatMap(({ warmUp, measured }) => [warmUp, measured])
  const requests = loadResults.flatMap((one) => one.requests)
  const promised = loadResults.flatMap((one) => one.promised)
  const nothingElse = {
    answers: [],
    unanswered: [],
    stored: [],
    inFlight: [],
    finalStatuses: [],
    expectedEvents: {},
  }
  const { lost, unexplainedDuplicates: duplicates } = check({ promised, received, ...nothingElse })
  return {
    requests: requests.length,
    refused: requests.filter(({ status }) => status < 200 || status > 299),
    mails: promised.length,
    ...{ lost, duplicates },
    times: timesOf(phases, received),
    longestTask: { alone: longestTaskOf(phases, 'alone'), beside: longestTaskOf(phases, 'beside') },
  }
}

const longestTaskOf = (phases: readonly Phase[], when: Phase['when']): number =>
  Math.max(
    ...phases.filter((phase) => phase.when === when).map(({ longestTaskMs = Number.NaN }) => longestTaskMs),
  )

function timesOf(phases: readonly Phase[], received: readonly Received[]): Times[] {
  const receivedAt = new Map(received.toReversed().map(({ id, at }) => [id, at]))
  const ofKind = (kind: QuietRequest['kind']) => (loadResults: LoadResults) =>
    loadResults.requests.filter((request) => request.kind === kind).map(({ ms }) => ms)
  const delays = ({ promised }: LoadResults) =>
    promised.flatMap(({ id, at }) => Math.max(0, (receivedAt.get(id) ?? Number.NaN) - at))
  const times = (kind: string, isCompared: boolean, pick: (loadResults: LoadResults) => number[]): Times => {
    const figures = (when: Phase['when']): Figures => {
      const values = phases.filter((phase) => phase.when === when).flatMap(({ measured }) => pick(measured))
      return { p50: median(values), p99: percentile(values, 0.99) }
    }
    const [alone, beside] = [figures('alone'), figures('beside')]
    return { kind, isCompared, alone, beside, ratio: beside.p99 / alone.p99 }
  }
  return [
    times('POST', true, ofKind('POST')),
    times('GET', true, ofKind('GET')),
    // prove:network and bench:fairness set limits for it.
    times('acceptance to MTA', false, delays),
  ]
}

/** The faults, as sentences. */
export function faultsOf({ requests, refused, mails, lost, duplicates }: Result): string[] {
  const of = (what: string, found: readonly object[]): string[] =>
    found.length === 0 ? [] : [`${found.length} ${what}, such as ${JSON.stringify(found[0])}`]
  return [
    ...(mails === 0 || requests === 0 ? ['the quiet tenant has sent nothing, so nothing was proved'] : []),
    ...of('messages of the quiet tenant were lost', lost),
    ...of('messages of the quiet tenant were received more than once', duplicates),
    ...of('requests of the quiet tenant were refused', refused),
  ]
}

/** The ratios above the limit. */
export const lateOf = ({ times }: Result, ratioAtMost: number): string[] =>
  times
    .filter(({ isCompared, ratio }) => isCompared && !(ratio <= ratioAtMost))
    .map(({ kind, ratio }) => `the 99th percentile of ${kind} was ${ratio.toFixed(2)} times as long`)
