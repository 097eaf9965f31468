import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import nodemailer from 'nodemailer'
import { deliveryReport } from './reports.ts'

/**
 * The reporting half of an MTA: for each message in the sink's ledger, it sends a success report (RFC 3464) to the
 * return path, and retries until the report is accepted.
 */
export interface Reporter {
  taken(): number
  /** Reports that were permanently rejected because the intake did not know the address. */
  refused: string[]
  /** Called if there is no progress even though reports are missing. */
  nudge?(): Promise<void>
  stop(): Promise<void>
}

const betweenTriesMs = 200

export interface ReporterOptions {
  /** Concurrent SMTP sessions. Postfix opens 20 (default_destination_concurrency_limit). */
  sessions?: number
}

export function startReporter(
  ledger: string,
  intakePort: number,
  { sessions = 4 }: ReporterOptions = {},
): Reporter {
  const transport = nodemailer.createTransport({
    pool: true,
    host: '127.0.0.1',
    port: intakePort,
    maxConnections: sessions,
    connectionTimeout: 2000,
    greetingTimeout: 5000,
    socketTimeout: 10_000,
  })
  const stopping = new AbortController()
  const refused: string[] = []
  let taken = 0
  const bring = async (line: string): Promise<void> => {
    const [, messageId = '', recipient = '', returnPath = ''] = line.split(' ')
    while (!stopping.signal.aborted) {
      try {
        await transport.sendMail({
          envelope: { from: '', to: [returnPath] },
          raw: deliveryReport({ messageId, recipient, returnPath }, 'delivered', '2.0.0'),
        })
        taken++
        return
      } catch (error) {
        const { responseCode = 0, message } = error as Error & { responseCode?: number }
        if (responseCode >= 500) {
          refused.push(`${returnPath}: ${message}`)
          return
        }
        await sleep(betweenTriesMs)
      }
    }
  }
  const running = (async () => {
    const brought: Promise<void>[] = []
    for await (const line of linesOf(ledger, stopping.signal)) brought.push(bring(line))
    await Promise.all(brought)
  })()
  return {
    taken: () => taken,
    refused,
    async stop() {
      stopping.abort()
      await running
      transport.close()
    },
  }
}

/** Follows a file: yields existing lines, then new ones when they are complete. */
async function* linesOf(path: string, stopping: AbortSignal): AsyncGenerator<string> {
  const file = await open(path, 'r')
  let rest = ''
  const chunk = Buffer.alloc(65_536)
  while (!stopping.aborted) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length)
    if (bytesRead === 0) await sleep(50)
    const lines = (rest + chunk.toString('latin1', 0, bytesRead)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  await file.close()
}
