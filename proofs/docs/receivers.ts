import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { signedHeaders, signingKey } from '../../server/src/core/mail/webhooks/signature.ts'
import type { Block } from './blocks.ts'

/** Requests to a receiver, and whether it should accept them. */
interface Delivery {
  secret: string
  headers: Record<string, string>
  /** Encoded in Base64. */
  body: string
  isGenuine: boolean
}

/** The example delivery on the page, with its secret. */
interface Example {
  secret: string
  headers: Record<string, string>
  body: string
}

/** Tests each example receiver with deliveries signed by Postern, and with forged ones. */
export async function tryReceivers(blocks: Block[], page: string, folder: string): Promise<void> {
  const find = (language: string, text: string): string => {
    const found = blocks.find((one) => one.language === language && one.text.includes(text))
    assert.ok(found, `no ${language} block contains ${text}`)
    return found.text
  }
  assert.equal(blocks.filter(({ language, mark }) => mark?.isRun && language !== 'sh').length, 3)
  const deliveries = makeDeliveries()
  const expected = deliveries.map(({ isGenuine }) => isGenuine)
  const input = JSON.stringify(deliveries)

  const file = path.join(folder, 'verified.mjs')
  await writeFile(file, find('js', 'function verified'))
  const { verified } = (await import(file)) as { verified: Verified }
  assert.deepEqual(
    deliveries.map(({ secret, headers, body }) => verified(secret, headers, Buffer.from(body, 'base64'))),
    expected,
  )
  const programs: [program: string, option: string, text: string][] = [
    ['python3', '-c', `${find('python', 'def verified')}${pythonDriver}`],
    ['perl', '-e', `${find('perl', 'sub verified')}${perlDriver}`],
  ]
  for (const [program, option, text] of programs) {
    const said = execFileSync(program, [option, text], { input, encoding: 'utf8' })
    assert.deepEqual(JSON.parse(said), expected, program)
  }

  const example = exampleOf(find('', 'webhook-signature'), page)
  const at = Number(example.headers['webhook-timestamp'])
  assert.equal(verified(example.secret, example.headers, Buffer.from(example.body), at), true)
  const shell = `${find('sh', 'webhook_signature()')}\nwebhook_signature "$@"`
  const signed = [example.secret, example.headers['webhook-id'] ?? '', String(at)]
  const signature = execFileSync('bash', ['-c', shell, 'bash', ...signed], { input: example.body })
  assert.equal(signature.toString(), example.headers['webhook-signature'])
}

type Verified = (secret: string, headers: object, body: Buffer, nowSeconds?: number) => boolean

const pythonDriver = `
import json, sys
print(json.dumps([verified(one["secret"], one["headers"], base64.b64decode(one["body"])) for one in json.load(sys.stdin)]))
`

const perlDriver = `
use JSON::PP;
my $deliveries = decode_json(join '', <STDIN>);
print encode_json([map { verified($_->{secret}, $_->{headers}, decode_base64($_->{body})) ? \\1 : \\0 } @$deliveries]);
`

function makeDeliveries(): Delivery[] {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const now = Math.floor(Date.now() / 1000)
  const text = Buffer.from('{"type":"endpoint.test","data":{"name":"Ünï"}}')
  const body = text.toString('base64')
  const headers = (at: number) => signedHeaders(signingKey(secret), '01a1d964', at, text)
  const { 'webhook-signature': signature = '', ...rest } = headers(now)
  const other = `v1,${randomBytes(32).toString('base64')}`
  const genuine = { secret, headers: headers(now), body, isGenuine: true }
  const forged = { ...genuine, isGenuine: false }
  return [
    genuine,
    { ...genuine, headers: { ...rest, 'webhook-signature': `${other} ${signature}` } },
    { ...forged, headers: { ...rest, 'webhook-signature': other } },
    { ...forged, headers: { ...rest, 'webhook-signature': signature.slice(0, -4) } },
    { ...forged, headers: rest },
    { ...forged, headers: { ...headers(now), 'webhook-id': '01a1d965' } },
    { ...forged, headers: headers(now - 400) },
    { ...forged, headers: { ...headers(now), 'webhook-timestamp': 'now' } },
    { ...forged, body: Buffer.concat([text, Buffer.from(' ')]).toString('base64') },
    { ...forged, secret: `whsec_${randomBytes(32).toString('base64')}` },
  ]
}

function exampleOf(request: string, page: string): Example {
  const [head = '', body = ''] = request.trimEnd().split('\n\n')
  const fields = head.matchAll(/^(?<name>webhook-\w+): (?<value>.*)$/gm)
  const headers = [...fields].map(({ groups = {} }) => [groups['name'], groups['value']])
  return { secret: /whsec_[\w+/]{43}=/.exec(page)?.[0] ?? '', headers: Object.fromEntries(headers), body }
}
