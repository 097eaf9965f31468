import { readFileSync } from 'node:fs'
import { Agent } from 'undici'

/** The comparison program that bench:webhooks starts: plain undici posts the bodies with a fixed concurrency. */
const { port, ca, atOnce, count, body } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as {
  port: number
  ca: string
  atOnce: number
  count: number
  body: string
}

const agent = new Agent({ connections: atOnce, connect: { ca }, allowH2: false })
const bytes = Buffer.from(body)
let next = 0
const postOn = async (): Promise<void> => {
  while (next < count) {
    const { body: answer } = await agent.request({
      ...{ origin: `https://127.0.0.1:${port}`, path: '/hook', method: 'POST', body: bytes },
      headers: { 'content-type': 'application/json', 'webhook-id': String(next++) },
    })
    await answer.dump()
  }
}
await Promise.all(Array.from({ length: atOnce }, postOn))
await agent.close()
// Runs until its parent has read the results and disconnects.
process.channel?.ref()
process.on('disconnect', () => process.exit())
