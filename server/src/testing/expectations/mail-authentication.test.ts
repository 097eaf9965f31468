import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { createTransport } from 'nodemailer'
import { type DnsRecord, startDns } from '../peers/dns.ts'
import { type Authentication, authenticationOf } from './mail-authentication.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})

const records: DnsRecord[] = [
  {
    name: 'p1._domainkey.shop.example.org',
    type: 'TXT',
    value: `v=DKIM1; k=rsa; p=${publicKey.toString('base64')}`,
  },
  { name: 'bounces.shop.example.org', type: 'CNAME', value: 'return.example.net' },
  { name: 'return.example.net', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
  { name: '_dmarc.shop.example.org', type: 'TXT', value: 'v=DMARC1; p=reject' },
]
const dns = await startDns({ '.': records })

// Signed by nodemailer, so mailauth does not verify its own signatures.
const transport = createTransport({
  streamTransport: true,
  buffer: true,
  newline: 'windows',
  dkim: { domainName: 'shop.example.org', keySelector: 'p1', privateKey },
})

async function signed(): Promise<string> {
  const { message } = await transport.sendMail({
    from: 'Shop <orders@shop.example.org>',
    to: 'anna@example.net',
    subject: 'Your order',
    text: 'It is on its way.',
  })
  return message.toString()
}

const authenticationWith = (
  raw: string,
  changes: { from?: string; ip?: string } = {},
): Promise<Authentication> =>
  authenticationOf(
    {
      raw: Buffer.from(raw),
      from: 'p-abc@bounces.shop.example.org',
      ip: '127.0.0.1',
      helo: 'mta.example.net',
      ...changes,
    },
    dns.server,
  )

describe('the authentication of a message at a receiver', () => {
  it('passes with DKIM and SPF, both aligned with From', async () => {
    assert.deepEqual(await authenticationWith(await signed()), {
      dkim: [{ result: 'pass', domain: 'shop.example.org', selector: 'p1' }],
      spf: { result: 'pass', domain: 'bounces.shop.example.org' },
      dmarc: {
        result: 'pass',
        policy: 'reject',
        alignedBy: { dkim: 'shop.example.org', spf: 'bounces.shop.example.org' },
      },
    })
  })

  it('passes with DKIM only when the client address fails SPF', async () => {
    const { spf, dmarc } = await authenticationWith(await signed(), { ip: '192.0.2.7' })
    assert.equal(spf.result, 'fail')
    assert.equal(dmarc.result, 'pass')
    assert.deepEqual(dmarc.alignedBy, { dkim: 'shop.example.org', spf: undefined })
  })

  it('fails if a letter is changed and the return path is at another domain', async () => {
    const { dkim, dmarc } = await authenticationWith((await signed()).replace('on its way', 'on my way'), {
      from: 'p-abc@return.example.net',
    })
    assert.equal(dkim[0]?.result, 'fail')
    assert.equal(dmarc.result, 'fail')
    assert.deepEqual(dmarc.alignedBy, { dkim: undefined, spf: undefined })
  })

  it('queries the DNS for every message', async () => {
    const mail = await signed()
    await dns.setZone(
      '.',
      records.filter(({ name }) => !name.includes('_domainkey')),
    )
    const { dkim } = await authenticationWith(mail)
    assert.notEqual(dkim[0]?.result, 'pass')
    await dns.setZone('.', records)
    assert.equal((await authenticationWith(mail)).dkim[0]?.result, 'pass')
  })
})
