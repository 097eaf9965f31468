import type { OutboundMail } from './ses-outbound.ts'

/** The events that SES publishes about a message, in their documented format. */
export type SesEventType =
  | 'Send'
  | 'Delivery'
  | 'Bounce'
  | 'Complaint'
  | 'DeliveryDelay'
  | 'Reject'
  | 'Rendering Failure'
  | 'Open'
  | 'Click'
  | 'Subscription'

type Said = Pick<OutboundMail, 'sesId' | 'to' | 'from' | 'tags' | 'configurationSet'>

export function sesEvent(mail: Said, eventType: SesEventType, changes: object = {}): string {
  const timestamp = new Date().toISOString()
  const [part, about] = aboutOf(mail, eventType, timestamp)
  return JSON.stringify({
    eventType,
    mail: {
      timestamp,
      ...{ source: mail.from, sourceArn: `arn:aws:ses:eu-west-1:111122223333:identity/${mail.from}` },
      ...{ sendingAccountId: '111122223333', messageId: mail.sesId, destination: [mail.to] },
      headersTruncated: false,
      headers: [{ name: 'From', value: mail.from }],
      commonHeaders: { from: [mail.from], to: [mail.to], messageId: mail.sesId },
      tags: {
        'ses:operation': ['SendEmail'],
        'ses:configuration-set': [mail.configurationSet],
        'ses:source-ip': ['192.0.2.7'],
        ...mail.tags,
      },
    },
    [part]: { ...about, ...changes },
  })
}

function aboutOf({ to }: Said, type: SesEventType, timestamp: string): [part: string, about: object] {
  const recipient = { emailAddress: to, action: 'failed' }
  switch (type) {
    case 'Delivery':
      return [
        'delivery',
        {
          ...{ timestamp, processingTimeMillis: 3000, recipients: [to] },
          smtpResponse: '250 2.6.0 Message received',
          reportingMTA: 'mta.example.com',
        },
      ]
    case 'Bounce': {
      const said = { status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 user unknown' }
      return [
        'bounce',
        {
          ...{ bounceType: 'Permanent', bounceSubType: 'General', timestamp, feedbackId: '0100-bounce' },
          bouncedRecipients: [{ ...recipient, ...said }],
          reportingMTA: 'dsn; mta.example.com',
        },
      ]
    }
    case 'Complaint':
      return [
        'complaint',
        {
          ...{ timestamp, feedbackId: '0100-complaint', userAgent: 'AnyCompany Feedback Loop (V0.01)' },
          complainedRecipients: [{ emailAddress: to }],
          ...{ complaintFeedbackType: 'abuse', arrivalDate: timestamp, complaintSubType: null },
        },
      ]
    case 'DeliveryDelay':
      return [
        'deliveryDelay',
        {
          ...{ timestamp, delayType: 'TransientCommunicationFailure', expirationTime: timestamp },
          delayedRecipients: [
            { emailAddress: to, status: '4.4.1', diagnosticCode: 'smtp; 421 4.4.1 Unable to connect' },
          ],
        },
      ]
    case 'Reject':
      return ['reject', { reason: 'Bad content' }]
    case 'Rendering Failure':
      return ['failure', { errorMessage: 'Attribute is missing', templateName: 'None' }]
    default:
      return [type.toLowerCase(), {}]
  }
}
