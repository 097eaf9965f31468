import { runAdministrators } from './administrators.ts'
import { Caller, Found, mismatch, type Stage } from './caller.ts'
import { seedOf } from './draw.ts'
import { parsed } from './judge.ts'
import { type Failure, runSequence } from './sequence.ts'
import { shrink } from './shrink.ts'
import { transmission, transmissionCount } from './transport.ts'
import type { Wild } from './wild.ts'

/**
 * So many requests, in parts side by side, each part on a connection of its own: sequences against the model, requests
 * from the document alone, and what is hardly HTTP. A part is had again from the run's seed and its number.
 */
export interface RunOptions {
  seed: number
  requests: number
  /** Only this part. */
  only?: number | undefined
  wild: Wild
  /** A project that nothing changes. */
  projectId: number
}

const lanes = 16
const stepsEach = 200
const wildEach = 100
// Past the first few, failures tell the same again.
const mostFailures = 3

interface PartFailure extends Failure {
  part: number
  kind: PartKind
}

/** What went wrong, each as a text from which it can be done again; the first one as short as it could be made. */
export async function run(stage: Stage, options: RunOptions): Promise<string[]> {
  const { requests, only } = options
  const failures: PartFailure[] = []
  let next = only ?? alone
  const isOver = () =>
    failures.length >= mostFailures || (only === undefined ? stage.tally.requests >= requests : next > only)
  const runNext = async (caller: Caller): Promise<void> => {
    const failure = await runPart(stage, options, caller, next++)
    if (!failure) return
    for (const { kind } of failure.found.complaints) stage.tally.complained(kind)
    failures.push(failure)
  }
  await onConnection(stage, runNext)
  // Where the administrators fell out, whoever acts may be none any more.
  const isFit = failures.length === 0
  await Promise.all(
    Array.from({ length: lanes }, () =>
      onConnection(stage, async (caller) => {
        while (isFit && !isOver()) await runNext(caller)
      }),
    ),
  )
  const texts: string[] = []
  for (const failure of failures) texts.push(await report(stage, options.seed, failure, texts.length === 0))
  return texts
}

async function onConnection(stage: Stage, work: (caller: Caller) => Promise<void>): Promise<void> {
  const caller = new Caller(stage)
  try {
    await work(caller)
  } finally {
    caller.close()
  }
}

type PartKind = 'administrators' | 'sequence' | 'wild' | 'transport'

/** The part before all others: nothing else may run beside it. */
const alone = -1

/** Of twenty parts fourteen are sequences. */
function kindOf(part: number): PartKind {
  if (part === alone) return 'administrators'
  if (part % 20 === 19) return 'transport'
  return part % 10 < 7 ? 'sequence' : 'wild'
}

async function runPart(
  stage: Stage,
  { seed, wild, projectId }: RunOptions,
  caller: Caller,
  part: number,
): Promise<PartFailure | undefined> {
  const kind = kindOf(part)
  const own = seedOf(seed, part)
  caller.forget()
  if (kind === 'sequence') {
    const failure = await runSequence(stage, caller, { seed: own, steps: stepsEach })
    return failure && { ...failure, part, kind }
  }
  const work = {
    administrators: () => runAdministrators(stage, caller, own),
    wild: () => wild.run(caller, own, wildEach),
    transport: () => transmitAll(stage, projectId),
  }[kind]
  try {
    await work()
    return undefined
  } catch (error) {
    if (!(error instanceof Found)) throw error
    return { found: error, step: 0, trail: caller.trail(), part, kind }
  }
}

/** Each on a connection of its own: the next request after a broken one would mean nothing. */
async function transmitAll(stage: Stage, projectId: number): Promise<void> {
  const count = transmissionCount({ token: '', projectId })
  for (let n = 0; n < count; n++) {
    const { about, request, allowed } = transmission({ token: stage.token(), projectId }, n)
    const operation = stage.document.operation(request.method === 'PATCH' ? 'projects.edit' : 'projects.show')
    await onConnection(stage, async (caller) => {
      const answer = await caller.send(request.method === 'OPTIONS' ? undefined : operation, request)
      const error = (parsed(answer) as { error?: string } | undefined)?.error ?? '-'
      const told = `${answer.status} ${error}`
      mismatch(
        allowed.includes(told) ? [] : [`${about}: the answer is ${told} and not ${allowed.join(' or ')}`],
      )
    })
  }
}

async function report(stage: Stage, seed: number, failure: PartFailure, isFirst: boolean): Promise<string> {
  const { part, kind, step, found } = failure
  const where = `in part ${part} (${kind}, step ${step}); again with POSTERN_TEST_SEED=${seed} POSTERN_TEST_PART=${part}`
  if (!isFirst) return `${found.message}\n\n${where}`
  if (kind !== 'sequence')
    return [found.message, where, failure.trail.split('\n\n').slice(-3).join('\n\n')].join('\n\n')
  const { kept, failure: short } = await shrink(stage, seedOf(seed, part), stepsEach, failure)
  const alone = `its steps ${kept.join(', ')} alone end in: ${short.found.message}`
  return [found.message, where, alone, short.trail].join('\n\n')
}
