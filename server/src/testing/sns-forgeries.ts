import { generateKeyPairSync, sign } from 'node:crypto'
import type { SnsFields, SnsPeer, SnsSigner } from './sns-peer.ts'

/**
 * What somebody could post who is not SNS, or not the SNS that we listen to. Each differs in one thing from a genuine
 * message about `event`, which would be taken.
 */
export interface Forgery {
  what: string
  /** Text, or octets that are none. */
  body: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

export interface ForgeryStage {
  peer: SnsPeer
  /** Allowed as well as the peer's own. */
  otherTopic: string
  event: string
}

const region = 'eu-west-1'
const host = `sns.${region}.amazonaws.com`

export async function snsForgeries(stage: ForgeryStage): Promise<Forgery[]> {
  const { peer, event } = stage
  const genuine = peer.notification(event)
  const json = (what: string, fields: object): Forgery => ({ what, body: JSON.stringify(fields) })
  return [
    ...contents(stage, genuine).map(([what, changes]) => json(what, { ...genuine, ...changes })),
    ...signatures(peer, genuine).map(([what, changes]) => json(what, { ...genuine, ...changes })),
    ...topics(peer).map((arn) => json(`a topic: ${arn}`, peer.notification(event, { TopicArn: arn }))),
    ...addresses(genuine['SigningCertURL'] ?? '').map((url) =>
      json(`a certificate at ${url}`, peer.notification(event, { SigningCertURL: url })),
    ),
    ...(await certificates(peer)).map(([what, signer]) =>
      json(what, peer.signed({ ...genuine, SigningCertURL: `https://${host}${signer.path}` }, signer)),
    ),
    ...times().map(([what, Timestamp]) => json(`a time: ${what}`, peer.notification(event, { Timestamp }))),
    ...confirmations(peer).map(([what, fields]) => json(what, fields)),
    ...shapes(genuine),
  ]
}

type Change = [what: string, changes: object]

/** Signed as something else. */
function contents({ peer, otherTopic, event }: ForgeryStage, genuine: SnsFields): Change[] {
  const other = peer.notification(event.replace('"Delivery"', '"Bounce"'))
  const { Message: _message, ...withoutMessage } = other
  return [
    ['another content under the signature', { Message: other['Message'] }],
    ['a space behind the content', { Message: `${genuine['Message']} ` }],
    ['another id', { MessageId: other['MessageId'] }],
    ['another time', { Timestamp: new Date(Date.now() - 1000).toISOString() }],
    ['another topic that is allowed', { TopicArn: otherTopic }],
    ['another subject', { Subject: 'Hello' }],
    ['an empty subject', { Subject: '' }],
    ['no subject', { Subject: undefined }],
    [
      'a subject that was not signed',
      { ...peer.notification(event, { Subject: undefined }), Subject: 'Hello' },
    ],
    [
      'the subject moved into the id',
      { MessageId: `${genuine['MessageId']}\nSubject\n${genuine['Subject']}`, Subject: undefined },
    ],
    ['the type of a confirmation', { Type: 'SubscriptionConfirmation', Token: 'x', SubscribeURL: 'x' }],
    ['the content of another, without the signature', { ...withoutMessage, Message: event }],
  ]
}

function signatures(peer: SnsPeer, genuine: SnsFields): Change[] {
  const text = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
    .map((name) => `${name}\n${genuine[name]}\n`)
    .join('')
  const good = Buffer.from(genuine['Signature'] ?? '', 'base64')
  const flipped = Buffer.from(good)
  flipped[0] = (flipped[0] ?? 0) ^ 1
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const own = (over: string, algorithm = 'sha256') => ({
    Signature: sign(algorithm, Buffer.from(over), stranger).toString('base64'),
  })
  return [
    ['no signature', { Signature: undefined }],
    ['an empty signature', { Signature: '' }],
    ['the signature of another', { Signature: peer.notification('{}')['Signature'] }],
    ['a signature with another bit', { Signature: flipped.toString('base64') }],
    ['half a signature', { Signature: good.subarray(0, 128).toString('base64') }],
    [
      'a signature with more behind it',
      { Signature: Buffer.concat([good, Buffer.of(0)]).toString('base64') },
    ],
    ['a signature in hexadecimal', { Signature: good.toString('hex') }],
    ['a signature in base64url', { Signature: `${good.toString('base64url')}-_` }],
    ['a signature with spaces', { Signature: ` ${genuine['Signature']}` }],
    ['a signature in a list', { Signature: [genuine['Signature']] }],
    ["a stranger's signature", own(text)],
    ["a stranger's signature of version 1", { ...own(text, 'sha1'), SignatureVersion: '1' }],
    ['the good signature as version 1', { SignatureVersion: '1' }],
    ['the good signature as version 3', { SignatureVersion: '3' }],
    ['a version that is a number', { SignatureVersion: 2 }],
    ['no version', { SignatureVersion: undefined }],
  ]
}

const topics = (peer: SnsPeer): string[] => [
  `arn:aws:sns:${region}:111122223333:somebody-else`,
  `arn:aws:sns:${region}:999988887777:postern-events`,
  'arn:aws:sns:us-east-1:111122223333:postern-events',
  `arn:aws-cn:sns:${region}:111122223333:postern-events`,
  `${peer.topicArn}2`,
  `${peer.topicArn} `,
  peer.topicArn.toUpperCase(),
  peer.topicArn.slice(0, -1),
  '',
  '__proto__',
]

function addresses(genuine: string): string[] {
  const path = genuine.slice(genuine.lastIndexOf('/'))
  const at = (origin: string) => `${origin}${path}`
  return [
    at(`http://${host}`),
    at('https://sns.us-east-1.amazonaws.com'),
    at('https://sns.amazonaws.com'),
    at(`https://${host}.cn`),
    at('https://evil.example'),
    at(`https://${host}.evil.example`),
    at(`https://evil.${host}`),
    at(`https://${host}:443`),
    at(`https://${host}:8443`),
    at(`https://user@${host}`),
    at(`https://${host}@evil.example`),
    at(`https://user:secret@${host}`),
    at(`https://${host.toUpperCase()}`),
    at(`https://${host}.`),
    at(`https://${host}\\@evil.example`),
    at('https://127.0.0.1'),
    at('https://sns.eu‑west‑1.amazonaws.com'),
    at('https://bucket.s3.eu-west-1.amazonaws.com'),
    at(`ftp://${host}`),
    at(`//${host}`),
    at(`https://${host}/`),
    at(`https://${host}/evil`),
    at(`https://${host}/evil/..`),
    `${genuine}?x=1`,
    `${genuine}#x`,
    `${genuine}.txt`,
    `${genuine}\n`,
    ` ${genuine}`,
    genuine.replace('.pem', '.PEM'),
    genuine.replace('SimpleNotificationService-', 'SimpleNotificationService-zz'),
    genuine.replace('/Simple', '/%53imple'),
    `https://${host}/`,
    '',
  ]
}

/** Each with a good signature by a key whose certificate is not one. */
async function certificates(peer: SnsPeer): Promise<[what: string, signer: SnsSigner][]> {
  const nowhere = { ...(await peer.addSigner()), path: `/SimpleNotificationService-${'0'.repeat(32)}.pem` }
  const serving = async (digit: string, body: string | Buffer) => {
    const path = `/SimpleNotificationService-${digit.repeat(32)}.pem`
    peer.serve(path, 200, body)
    return { ...(await peer.addSigner()), path }
  }
  return [
    ['a certificate that is nowhere', nowhere],
    ['a certificate that is none', await serving('1', 'not a certificate')],
    ['a certificate without end', await serving('2', Buffer.alloc(1024 * 1024, 'x'))],
    ['a certificate of somebody else', await serving('3', peer.certificateOf() ?? '')],
    ['a certificate that is over', await peer.addSigner({ days: -1 })],
    ['a certificate with a small key', await peer.addSigner({ bits: 1024 })],
  ]
}

function times(): [what: string, time: string][] {
  const ago = (days: number) => new Date(Date.now() - days * 24 * 3600_000).toISOString()
  return [
    ['older than anybody remembers', ago(13.1)],
    ['of last year', ago(365)],
    ['an hour ahead', ago(-1 / 24)],
    ['years ahead', ago(-3650)],
    ['of no date', '2026-02-31T25:00:00.000Z'],
    ['in words', 'now'],
    ['in seconds', String(Math.floor(Date.now() / 1000))],
    ['of a zone', `${ago(0).slice(0, -1)}+00:00`],
  ]
}

function confirmations(peer: SnsPeer): [what: string, fields: object][] {
  const type = 'SubscriptionConfirmation'
  const genuine = peer.confirmation(type)
  const ofStranger = { TopicArn: `arn:aws:sns:${region}:999988887777:evil` }
  return [
    ["a confirmation of a stranger's topic", peer.confirmation(type, ofStranger)],
    ['a confirmation with another token', { ...genuine, Token: 'f'.repeat(64) }],
    ['a confirmation with another address', { ...genuine, SubscribeURL: 'https://evil.example/' }],
    ['a confirmation without a token', { ...genuine, Token: undefined }],
    [
      'a confirmation that is older than anybody remembers',
      peer.confirmation(type, { Timestamp: times()[0]?.[1] ?? '' }),
    ],
    [
      'the end of a subscription that becomes its beginning',
      { ...peer.confirmation('UnsubscribeConfirmation'), Type: type },
    ],
  ]
}

function shapes(genuine: SnsFields): Forgery[] {
  const text = JSON.stringify(genuine)
  const json = { 'content-type': 'application/json' }
  return [
    { what: 'nothing', body: '' },
    { what: 'what is no JSON', body: text.slice(1) },
    { what: 'null', body: 'null' },
    { what: 'a list', body: `[${text}]` },
    { what: 'a text', body: JSON.stringify(text) },
    { what: 'a number', body: '1' },
    { what: 'a type that nobody knows', body: JSON.stringify({ ...genuine, Type: 'Else' }) },
    { what: 'a type from the prototype', body: JSON.stringify({ ...genuine, Type: 'constructor' }) },
    { what: 'no content', body: JSON.stringify({ ...genuine, Message: undefined }) },
    { what: 'content that is an object', body: JSON.stringify({ ...genuine, Message: {} }) },
    { what: 'a mark before the text', body: `\ufeff${text}` },
    { what: 'octets that are no text', body: Buffer.concat([Buffer.from(text), Buffer.of(0xff)]) },
    { what: 'more than SNS sends', body: `${text}${' '.repeat(256 * 1024)}` },
    { what: 'another media type', body: text, headers: json },
    { what: 'another charset and type', body: text, headers: { 'content-type': 'text/html' } },
  ]
}
