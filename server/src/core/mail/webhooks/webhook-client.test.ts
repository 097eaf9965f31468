import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent } from 'undici'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { startReceiver } from '../../../testing/peers/webhook-receiver.ts'
import { type ReceiverResponse, WebhookClient } from './webhook-client.ts'

const receiver = await startReceiver()
const agent = new Agent({ connect: { ca: receiver.ca }, allowH2: false })
cleanUp(() => agent.destroy())

const postTo = (client: WebhookClient, path: string): Promise<ReceiverResponse> =>
  new Promise((resolve) =>
    client.post({ origin: receiver.url, path, headers: { 'webhook-id': path }, body: '{"a":"ä"}' }, resolve),
  )

test('a request without a response times out, also after the client was idle', async () => {
  receiver.answer('hang', '/hang')
  const client = new WebhookClient(agent, 500)
  for (let no = 0; no < 2; no++) {
    const { status, response, error } = await postTo(client, '/hang')
    assert.deepEqual([status, response, error], [null, null, 'No response within 15 seconds.'])
  }
})

test('a response without an end counts by its status and has the beginning of its body', async () => {
  receiver.answer('endless', '/endless')
  const client = new WebhookClient(agent, 3_600_000)
  const { status, response, error } = await postTo(client, '/endless')
  assert.deepEqual([status, response, error], [200, 'and so on', null])
})

test('a body is sent as UTF-8', async () => {
  const { status, response, error } = await postTo(new WebhookClient(agent, 3_600_000), '/text')
  assert.deepEqual([status, response, error], [204, '', null])
  const [got] = await receiver.until(1, '/text')
  assert.equal(got?.body, '{"a":"ä"}')
})
