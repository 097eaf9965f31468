import { Counter } from '../../../platform/telemetry/metrics.ts'

export const inboundMails = new Counter('postern_inbound_mails_total', 'Inbound messages, by outcome.', {
  outcome: ['endpoint', 'forward', 'drop', 'refused', 'failed'],
})

export const forwards = new Counter(
  'postern_forwards_total',
  'Inbound messages for forwarding routes, by outcome: forwarded, or rejected because the target has not confirmed (unconfirmed), DMARC failed (dmarc) or could not be evaluated (unknown), or the daily limit is reached (limit).',
  { outcome: ['forwarded', 'unconfirmed', 'dmarc', 'unknown', 'limit'] },
)
