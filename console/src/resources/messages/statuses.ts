/** By which messages can be filtered. */
export const messageStatuses = [
  'scheduled',
  'queued',
  'sent',
  'deferred',
  'delivered',
  'bounced',
  'failed',
  'complained',
  'suppressed',
  'canceled',
] as const
