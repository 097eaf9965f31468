import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { authenticateMail } from '../../../formats/authentication.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { ParserTiming } from '../../../testing/harness/parser-timing.ts'
import { AnalysisThreads } from './analysis-threads.ts'

/** A name server that never responds. */
const mute = createSocket('udp4').bind(0, '127.0.0.1')
await once(mute, 'listening')
cleanUp(async () => void mute.close())
const dns = { servers: [`127.0.0.1:${mute.address().port}`] }

const client = { ip: '192.0.2.1', helo: 'client.example', sender: 'ada@example.com' }
const mail = (fields: string) => Buffer.from(`From: ada@example.com\r\n${fields}\r\nHello\r\n`)
const requestFor = (raw: Buffer) => ({
  ...{ raw, client, name: 'mx.example', recipients: [], forwards: [], event: null },
})
const someone = { network: '192.0.2.1', addressee: 'project 1' }

test('signatures crafted to take minutes are not verified, but others are', async (t) => {
  const resolver = () => Promise.reject(Object.assign(new Error('no such record'), { code: 'ENODATA' }))
  const signature = (domain: string, spaces: number) =>
    `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain}; s=x; h=from; bh=x; b=${' '.repeat(spaces)}y\r\n`
  const fields = signature('slow.example', 20_000).repeat(5) + signature('example.com', 1)
  const quickness = new ParserTiming(1000)
  const { authentication } = await quickness.ofAsync('signatures with 20,000 spaces', () =>
    authenticateMail(mail(fields), client, { resolver, name: 'mx.example', withinMs: 600_000 }),
  )
  assert.deepEqual(
    authentication.dkim.map(({ domain }) => domain),
    ['example.com'],
  )
  t.diagnostic(`${quickness}`)
})

test('a hung thread is terminated, its jobs fail, and the next jobs get a new thread', async () => {
  const analysisThreads = new AnalysisThreads({ dns, limits: { authTimeoutMs: 60_000, silentMs: 300 } })
  cleanUp(() => analysisThreads.close())
  for (let n = 0; n < 2; n++) {
    await assert.rejects(analysisThreads.analyse(requestFor(mail('')), someone), /does not respond/)
  }
})
