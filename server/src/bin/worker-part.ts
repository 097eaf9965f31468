import { type Context, workerDeps } from '../context/context.ts'
import { QueueGauges } from '../core/gauges/queue-gauges.ts'
import { Gauge, onScrape } from '../platform/telemetry/metrics.ts'
import { startWorker } from '../worker/worker.ts'
import type { Part } from './serve.ts'

const providerUnavailable = new Gauge(
  'postern_provider_unavailable',
  "1 while none of the provider's hosts accepts mail and the worker is backing off, otherwise 0.",
  { provider: ['service', 'ses'] },
)

export async function workerPart(context: Context): Promise<Part> {
  const { config, db, home, log, transports } = context
  const gauges = new QueueGauges({
    ...{ db: db.admin, mailDb: home?.mail, log },
    hasSystemMail: context.systemMail !== undefined,
  })
  onScrape(() => gauges.refresh())
  onScrape(() => {
    if (config.mtaHosts.length > 0)
      providerUnavailable.set({ provider: 'service' }, Number(transports.service.isUnavailable))
    if (transports.ses) providerUnavailable.set({ provider: 'ses' }, Number(transports.ses.isUnavailable))
  })
  return startWorker(workerDeps(context))
}
