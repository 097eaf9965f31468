import { runAdministrators } from './administrators.ts'
import { Caller, type FuzzContext, mismatch, ViolationError } from './caller.ts'
import { parsed } from './check-response.ts'
import { seedOf } from './draw.ts'
import type { SchemaRequests } from './schema-requests.ts'
import { type Failure, runSequence } from './sequence.ts'
import { shrink } from './shrink.ts'
import { transmission, transmissionCount } from './transport.ts'

/**
 * Sends a number of requests, divided into parts that run in parallel, each on its own connection: sequences compared
 * with the model, requests generated only from the document, and malformed HTTP. The run's seed and a part's number
 * reproduce that part.
 */
export interface RunOptions {
  seed: number
  requests: number
  /** Runs only this part. */
  only?: number | undefined
  schemaRequests: SchemaRequests
  /** A project that no request changes. */
  projectId: number
}

const lanes = 16
const stepsEach = 200
const schemaRequestsEach = 100
// Further failures usually have the same cause.
const maxFailures = 3

interface PartFailure extends Failure {
  part: number
  kind: PartKind
}

/** Returns a report for each failure, with the command that repeats it. The first failure is also minimized. */
export async function run(context: FuzzContext, options: RunOptions): Promise<string[]> {
  const { requests, only } = options
  const failures: PartFailure[] = []
  let next = only ?? alone
  const isOver = () =>
    failures.length >= maxFailures || (only === undefined ? context.tally.requests >= requests : next > only)
  const runNext = async (caller: Caller): Promise<void> => {
    const failure = await runPart(context, options, caller, next++)
    if (!failure) return
    for (const { kind } of failure.found.violations) context.tally.recordViolation(kind)
    failures.push(failure)
  }
  await onConnection(context, runNext)
  // If the administrators part failed, the acting user may have lost the administrator role.
  const isFit = failures.length === 0
  await Promise.all(
    Array.from({ length: lanes }, () =>
      onConnection(context, async (caller) => {
        while (isFit && !isOver()) await runNext(caller)
      }),
    ),
  )
  const texts: string[] = []
  for (const failure of failures) texts.push(await report(context, options.seed, failure, texts.length === 0))
  return texts
}

async function onConnection(context: FuzzContext, work: (caller: Caller) => Promise<void>): Promise<void> {
  const caller = new Caller(context)
  try {
    await work(caller)
  } finally {
    caller.close()
  }
}

type PartKind = 'administrators' | 'sequence' | 'schema' | 'transport'

/** The first part. It cannot run in parallel with others. */
const alone = -1

/** 14 out of 20 parts are sequences. */
function kindOf(part: number): PartKind {
  if (part === alone) return 'administrators'
  if (part % 20 === 19) return 'transport'
  return part % 10 < 7 ? 'sequence' : 'schema'
}

async function runPart(
  context: FuzzContext,
  { seed, schemaRequests, projectId }: RunOptions,
  caller: Caller,
  part: number,
): Promise<PartFailure | undefined> {
  const kind = kindOf(part)
  const own = seedOf(seed, part)
  caller.forget()
  if (kind === 'sequence') {
    const failure = await runSequence(context, caller, { seed: own, steps: stepsEach })
    return failure && { ...failure, part, kind }
  }
  const work = {
    administrators: () => runAdministrators(context, caller, own),
    schema: () => schemaRequests.run(caller, own, schemaRequestsEach),
    transport: () => transmitAll(context, projectId),
  }[kind]
  try {
    await work()
    return undefined
  } catch (error) {
    if (!(error instanceof ViolationError)) throw error
    return { found: error, step: 0, trail: caller.trail(), part, kind }
  }
}

/**
 * Each request uses its own connection, because nothing that follows a malformed request on a connection can be
 * interpreted.
 */
async function transmitAll(context: FuzzContext, projectId: number): Promise<void> {
  const count = transmissionCount({ token: '', projectId })
  for (let n = 0; n < count; n++) {
    const { about, request, allowed } = transmission({ token: context.token(), projectId }, n)
    const operation = context.document.operation(
      request.method === 'PATCH' ? 'projects.edit' : 'projects.show',
    )
    await onConnection(context, async (caller) => {
      const response = await caller.send(request.method === 'OPTIONS' ? undefined : operation, request)
      const error = (parsed(response) as { error?: string } | undefined)?.error ?? '-'
      const actual = `${response.status} ${error}`
      mismatch(allowed.includes(actual) ? [] : [`${about}: expected ${allowed.join(' or ')}, got ${actual}`])
    })
  }
}

async function report(
  context: FuzzContext,
  seed: number,
  failure: PartFailure,
  isFirst: boolean,
): Promise<string> {
  const { part, kind, step, found } = failure
  const where = `part ${part} (${kind}, step ${step}); repeat with POSTERN_TEST_SEED=${seed} POSTERN_TEST_PART=${part}`
  if (!isFirst) return `${found.message}\n\n${where}`
  if (kind !== 'sequence')
    return [found.message, where, failure.trail.split('\n\n').slice(-3).join('\n\n')].join('\n\n')
  const { kept, failure: short } = await shrink(context, seedOf(seed, part), stepsEach, failure)
  const minimized = `steps ${kept.join(', ')} are enough to fail with: ${short.found.message}`
  return [found.message, where, minimized, short.trail].join('\n\n')
}
