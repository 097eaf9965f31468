import { setTimeout as sleep } from 'node:timers/promises'
import { makeSampleMessage } from '../../bench/sample-message.ts'
import type { LoadResults, QuietOptions, QuietRequest } from './quiet.ts'

/**
 * The quiet tenant as a separate process, started by quiet.ts, so that any delay comes from Postern. It sends messages
 * and reads lists at a constant rate, without waiting for earlier responses.
 */
const { url, tenant, recipients, pauseMs }: QuietOptions = JSON.parse(process.argv[2] ?? '')
const sampleMessage = makeSampleMessage(1500)
const reads = ['/messages?limit=10', `/projects/${tenant.projectId}/domains`]
const patienceMs = 120_000
let mails = 0

async function ask(
  path: string,
  body?: object,
): Promise<{ answer: { id?: string; error?: string }; status: number }> {
  const response = await fetch(`${url}/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${tenant.secret}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal: AbortSignal.timeout(patienceMs),
  })
  return { status: response.status, answer: (await response.json()) as { id?: string; error?: string } }
}

async function timed(loadResults: LoadResults, kind: QuietRequest['kind'], path: string, body?: object) {
  const startedAt = performance.now()
  const { status, answer } = await ask(path, body).catch((error: Error) => ({
    ...{ status: 0, answer: { error: `${error.message} ${error.cause ?? ''}`.trim(), id: undefined } },
  }))
  loadResults.requests.push({ kind, status, error: answer.error ?? '', ms: performance.now() - startedAt })
  return answer.id
}

async function send(loadResults: LoadResults): Promise<void> {
  const recipient = `${recipients}-${++mails}@quiet.test`
  const body = { from: `shop@${tenant.domain}`, to: [recipient], ...sampleMessage }
  const id = await timed(loadResults, 'POST', '/messages', body)
  const at = performance.timeOrigin + performance.now()
  if (id !== undefined) loadResults.promised.push({ id, recipient, at })
}

async function speak(forMs: number): Promise<LoadResults> {
  const loadResults: LoadResults = { requests: [], promised: [] }
  const asked: Promise<unknown>[] = []
  const startedAt = performance.now()
  for (let tick = 0; tick * pauseMs < forMs; tick++) {
    await sleep(Math.max(0, startedAt + tick * pauseMs - performance.now()))
    asked.push(send(loadResults), timed(loadResults, 'GET', reads[tick % reads.length] ?? ''))
  }
  await Promise.all(asked)
  return loadResults
}

process.on('message', (forMs: number) => void speak(forMs).then((loadResults) => process.send?.(loadResults)))
process.on('disconnect', () => process.exit())
