import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { cleanUp } from '../../testing/cleanup.ts'
import { Examiners } from './examiners.ts'

/** A name server that never answers. */
const mute = createSocket('udp4').bind(0, '127.0.0.1')
await once(mute, 'listening')
cleanUp(async () => void mute.close())
const dns = { servers: [`127.0.0.1:${mute.address().port}`] }

const mail = (fields: string) => Buffer.from(`From: ada@example.com\r\n${fields}\r\nHello\r\n`)
const asked = (raw: Buffer) => ({
  ...{ raw, name: 'mx.example', forwards: [], isParsed: false },
  client: { ip: '192.0.2.1', helo: 'client.example', sender: 'ada@example.com' },
})

test('signatures that are made to take minutes take no time', async () => {
  const examiners = new Examiners({ dns, limits: { judgedWithinMs: 200 } })
  cleanUp(() => examiners.close())
  const tags = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.com; s=x; h=from; bh=x; b=${' '.repeat(20_000)}y`
  const fields = Array.from({ length: 5 }, () => `DKIM-Signature: ${tags}\r\n`).join('')
  await examiners.examine(asked(mail('')))
  const startedAt = performance.now()
  await examiners.examine(asked(mail(fields)))
  const tookMs = performance.now() - startedAt
  assert.ok(tookMs < 1_000, `${tookMs} ms`)
})

test('a thread that hangs is ended, whoever waits for it is told so, and the next have another', async () => {
  const examiners = new Examiners({ dns, limits: { judgedWithinMs: 60_000, silentMs: 300 } })
  cleanUp(() => examiners.close())
  for (let n = 0; n < 2; n++) {
    await assert.rejects(examiners.examine(asked(mail(''))), /hangs/)
  }
})
