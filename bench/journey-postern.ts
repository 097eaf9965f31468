import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { startReporter } from '../proofs/reporter.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { cpuSeconds } from './figures.ts'
import { type Postern, startPostern } from './postern.ts'
import { acceptOne } from './queue.ts'
import type { SampleMessage } from './sample-message.ts'
import { makeSenders, type Sender } from './senders.ts'
import { startSink } from './sink.ts'

/** One side of the comparison. */
export interface Journey {
  /** Sends messages, waits until all have completed their journey, and returns the CPU ms per message by program. */
  travel(count: number): Promise<Record<string, number>>
  close(): Promise<void>
}

export interface PosternJourneyOptions {
  sampleMessage: SampleMessage
  senders: number
  /** Another version. */
  program?: string
}

const requestsAtOnce = 16
/** As many as Postfix opens to one destination (default_destination_concurrency_limit). */
const reporterSessions = 20
/** Longer than any pause on a busy machine. */
const silenceMs = 120_000
/** Until the results of the last messages are published. */
const settleMs = 1500

/**
 * An installation in which messages are accepted individually, sent to a sink and reported as delivered. These steps
 * run concurrently, as in production. The clients, the sink and the reporter are not counted.
 */
export async function openPosternJourney(
  options: PosternJourneyOptions,
): Promise<Journey & { superuser: pg.Client }> {
  const postern = await startPostern({ program: options.program })
  try {
    const ledger = path.join(postern.directory, 'received')
    const sink = await startSink(ledger)
    const intakePort = await steadyPort()
    const senders = await makeSenders(postern, options.senders)
    const worker = await postern.start('worker', {
      environment: { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` },
    })
    const intake = await postern.start('intake', { environment: { POSTERN_BOUNCE_PORT: String(intakePort) } })
    const reporter = startReporter(ledger, intakePort, { sessions: reporterSessions })
    const cpuUsed = async (): Promise<Record<string, number>> => ({
      API: await cpuSeconds(postern.pids.api),
      worker: await cpuSeconds(worker.pid),
      intake: await cpuSeconds(intake.pid),
      PostgreSQL: await cpuSeconds(postern.pids.postgres, true),
    })
    let sent = 0
    return {
      superuser: postern.superuser,
      async travel(count) {
        const before = await cpuUsed()
        await accept(postern, senders, options.sampleMessage, count)
        sent += count
        await sink.until(sent, silenceMs)
        for (const deadline = Date.now() + silenceMs; reporter.taken() < sent; await sleep(50)) {
          if (Date.now() > deadline || reporter.refused.length > 0)
            throw new Error('Not every report was accepted.')
        }
        await sleep(settleMs)
        await requireDelivered(postern, sent)
        const after = await cpuUsed()
        return Object.fromEntries(
          Object.entries(after).map(([name, seconds]) => [
            name,
            ((seconds - (before[name] ?? 0)) * 1000) / count,
          ]),
        )
      },
      async close() {
        await reporter.stop()
        sink.stop()
        await postern.stop()
      },
    }
  } catch (error) {
    await postern.stop()
    throw error
  }
}

async function accept(
  postern: Postern,
  senders: readonly Sender[],
  sampleMessage: SampleMessage,
  count: number,
): Promise<void> {
  let next = 0
  const sendOn = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++)
      await acceptOne(postern, senders[index % senders.length] as Sender, sampleMessage)
  }
  await Promise.all(Array.from({ length: requestsAtOnce }, sendOn))
}

/** Counted in the database, independently of the reporter. */
async function requireDelivered({ superuser }: Postern, sent: number): Promise<void> {
  const { rows } = await superuser.query<{ status: string; count: number }>(
    'select status, count(*)::int as count from mail.recipients group by status',
  )
  if (rows.length !== 1 || rows[0]?.status !== 'delivered' || rows[0].count !== sent)
    throw new Error(`${sent} messages were accepted; ${JSON.stringify(rows)}`)
}
