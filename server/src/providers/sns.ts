import { type KeyObject, verify } from 'node:crypto'

/**
 * The format and signed content of Amazon SNS messages as posted to an HTTPS endpoint. This module is pure;
 * sns-client.ts fetches certificates.
 */
export interface SnsMessage {
  type: 'Notification' | 'SubscriptionConfirmation' | 'UnsubscribeConfirmation'
  topicArn: string
  /** The published text; in a confirmation, a human-readable sentence. */
  message: string
  /** In a confirmation: the token that confirms the subscription. */
  token: string | null
  sentAt: Date
  certificateUrl: string
  signatureVersion: string
  signature: Buffer
  /** The signed text. */
  signed: string
}

const signedFields = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: [
    'Message',
    'MessageId',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const

const isType = (type: unknown): type is SnsMessage['type'] =>
  typeof type === 'string' && Object.hasOwn(signedFields, type)

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Undefined if the body is not an SNS message. The content is untrusted until the signature is verified. */
export function readSnsMessage(body: Buffer): SnsMessage | undefined {
  let fields: Record<string, unknown>
  try {
    fields = JSON.parse(utf8.decode(body))
  } catch {
    return undefined
  }
  if (typeof fields !== 'object' || fields === null) return undefined
  const textOf = (name: string) => (Object.hasOwn(fields, name) ? fields[name] : undefined)
  const { Type: type } = fields
  if (!isType(type)) return undefined
  let signed = ''
  for (const name of signedFields[type]) {
    const value = textOf(name)
    // Only the subject can be missing; it is then not part of the signed text.
    if (name === 'Subject' && (value === undefined || value === null)) continue
    if (typeof value !== 'string') return undefined
    // The signed text is a concatenation of lines: a field with line breaks could imitate two fields.
    if (name !== 'Message' && value.includes('\n')) return undefined
    signed += `${name}\n${value}\n`
  }
  const [topicArn, message, timestamp] = ['TopicArn', 'Message', 'Timestamp'].map(textOf) as string[]
  const [certificateUrl, signatureVersion, signature] = [
    'SigningCertURL',
    'SignatureVersion',
    'Signature',
  ].map(textOf)
  if (
    typeof certificateUrl !== 'string' ||
    typeof signatureVersion !== 'string' ||
    typeof signature !== 'string' ||
    !base64.test(signature) ||
    !time.test(timestamp ?? '')
  ) {
    return undefined
  }
  const sentAt = new Date(timestamp ?? '')
  if (Number.isNaN(sentAt.getTime())) return undefined
  return {
    ...{ type, topicArn: topicArn ?? '', message: message ?? '', sentAt, certificateUrl, signatureVersion },
    token: type === 'Notification' ? null : (textOf('Token') as string),
    signature: Buffer.from(signature, 'base64'),
    signed,
  }
}

const topic = /^arn:aws(-cn|-us-gov)?:sns:([a-z]{2}(?:-[a-z]+)+-\d{1,2}):\d{12}:[\w-]{1,256}(?:\.fifo)?$/

/** Undefined if it is not a topic ARN. */
export const regionOfTopic = (arn: string): string | undefined => topic.exec(arn)?.[2]

/** The SNS host of the topic's region. Derived from a configured topic, never from a message. */
export function snsHostOf(arn: string): string {
  const [, partition, region] = topic.exec(arn) ?? []
  if (region === undefined) throw new RangeError(`"${arn}" is not an SNS topic ARN`)
  return `sns.${region}.amazonaws.com${partition === '-cn' ? '.cn' : ''}`
}

const certificatePath = /^\/SimpleNotificationService-[0-9a-f]{8,64}\.pem$/

/**
 * The path of a certificate on the SNS host of the topic's region, or undefined. The URL is compared
 * character by character: a port, a user, a query or another spelling of the host does not match.
 */
export function certificatePathOf({ certificateUrl, topicArn }: SnsMessage): string | undefined {
  const start = `https://${snsHostOf(topicArn)}`
  const path = certificateUrl.slice(start.length)
  return certificateUrl.startsWith(start) && certificatePath.test(path) ? path : undefined
}

/** Signature version 2: RSA (PKCS #1 v1.5) with SHA-256. */
export const isSigned = ({ signed, signature }: SnsMessage, key: KeyObject): boolean =>
  verify('sha256', Buffer.from(signed), key, signature)
