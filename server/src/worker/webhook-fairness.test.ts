import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../testing/harness/database.ts'
import { webhookHarness } from '../testing/harness/webhook-harness.ts'

/** Fairness between two projects in a worker with few slots. */
const stage = await webhookHarness(await testDatabase())
const { receiver, makeProject, makeEndpoint, publishEvents } = stage

test('a project with more slow endpoints than slots does not delay another project', async () => {
  const slow = await makeProject()
  const released = Promise.withResolvers<void>()
  const paths: string[] = []
  for (let n = 0; n < 24; n++) {
    const { path } = await makeEndpoint(slow)
    receiver.answer({ status: 204, after: released.promise }, path)
    paths.push(path)
  }
  const quick = await makeEndpoint(await makeProject())
  await publishEvents(slow, 2)
  stage.startWorker({ slots: { healthy: 8, failing: 4 } })
  await receiver.until(2)
  await publishEvents(quick.project_id, 5)
  await receiver.until(5, quick.path)
  const pending = paths.reduce((sum, path) => sum + receiver.pending(path), 0)
  assert.equal(pending, receiver.got.length - 5, 'no slow endpoint has responded')
  released.resolve()
})
