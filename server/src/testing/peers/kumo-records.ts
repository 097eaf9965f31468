/** The log records that KumoMTA writes about a message, in their documented format. */
export type KumoRecordType =
  | 'Reception'
  | 'Delivery'
  | 'Bounce'
  | 'TransientFailure'
  | 'Expiration'
  | 'AdminBounce'
  | 'OOB'
  | 'Feedback'
  | 'Rejection'
  | 'Delayed'
  | 'AdminRebind'
  | 'XferOut'

export interface KumoMessage {
  sender: string
  recipient: string
}

export type KumoRecord = Record<string, unknown>

const startedAt = Date.now()
let made = 0

/** Each record has its own id and time. `changes` replaces members. */
export function kumoRecord(
  { sender, recipient }: KumoMessage,
  type: KumoRecordType,
  changes: object = {},
): KumoRecord {
  const at = new Date(startedAt + ++made)
  const seconds = Math.floor(at.getTime() / 1000)
  const domain = recipient.slice(recipient.lastIndexOf('@') + 1)
  const isDelivery = ['Delivery', 'Bounce', 'TransientFailure'].includes(type)
  return {
    type,
    id: `5c1a90e2bb0d11ef8e2200155d${made.toString(16).padStart(6, '0')}`,
    ...(type === 'Feedback'
      ? { sender: 'fbl@provider.example', recipient: 'fbl@mta.example' }
      : { sender, recipient }),
    queue: domain,
    site: isDelivery ? `pool-1->mx.${domain}@smtp_client` : '',
    size: 1830,
    response: responses[type],
    peer_address: isDelivery ? { name: `mx.${domain}.`, addr: '192.0.2.25' } : null,
    ...{ timestamp: seconds, event_time: at.toISOString(), created: seconds, created_time: at.toISOString() },
    num_attempts: isDelivery ? 1 : 0,
    bounce_classification: 'Uncategorized',
    ...{ egress_pool: 'pool', egress_source: 'pool-1' },
    source_address: isDelivery ? { address: '198.51.100.7:53210' } : null,
    feedback_report: type === 'Feedback' ? complaintAbout(sender, at) : null,
    ...{ meta: {}, headers: {} },
    delivery_protocol: isDelivery ? 'ESMTP' : null,
    reception_protocol: 'ESMTP',
    nodeid: '6f0c8f1e-6a3b-4c3e-9d57-1f4f0c2b7a10',
    ...changes,
  }
}

const response = (
  code: number,
  enhanced: [number, number, number] | null,
  content: string,
  command: string | null,
) => ({
  code,
  enhanced_code: enhanced && { class: enhanced[0], subject: enhanced[1], detail: enhanced[2] },
  ...{ content, command },
})

const responses: Record<KumoRecordType, object> = {
  Reception: response(250, null, '', null),
  Delivery: response(250, [2, 0, 0], 'OK queued as 4XyZ', '.'),
  Bounce: response(550, [5, 1, 1], 'no mailbox here by that name', 'RCPT TO:<someone@example.net>'),
  TransientFailure: response(451, [4, 7, 1], 'greylisted, try again later', 'RCPT TO:<someone@example.net>'),
  Expiration: response(
    551,
    [5, 4, 7],
    'Next delivery time would be at 2026-11-20 which exceeds the expiry time',
    null,
  ),
  AdminBounce: response(551, [5, 7, 1], 'Administrator bounced with reason: cleanup', null),
  OOB: response(550, [5, 2, 1], '5.2.1 mailbox disabled', null),
  Feedback: response(250, null, '', null),
  Rejection: response(550, [5, 7, 1], 'relaying not permitted', 'RCPT TO:<someone@example.net>'),
  Delayed: response(400, null, 'Context: MessageRateThrottle. Next due in 10s', null),
  AdminRebind: response(250, null, 'Rebound from a.example to b.example: maintenance', null),
  XferOut: response(250, null, 'Message transferred', null),
}

const complaintAbout = (mailFrom: string, at: Date) => ({
  ...{ feedback_type: 'abuse', user_agent: 'ProviderFBL/2.1', version: '1' },
  ...{ arrival_date: at.toISOString(), incidents: null, original_envelope_id: null },
  original_mail_from: mailFrom,
  reporting_mta: { mta_type: 'dns', name: 'mx.provider.example' },
  ...{ source_ip: '198.51.100.7', authentication_results: [], original_rcpto_to: [] },
  ...{ reported_domain: [], reported_uri: [], extensions: {} },
  original_message: 'From: shop@example.com\nSubject: Hello\n\nHello\n',
  supplemental_trace: null,
})
