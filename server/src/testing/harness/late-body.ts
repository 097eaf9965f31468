import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { eventually } from './waiting.ts'

/**
 * Sends the head of a request to an API in this process and waits until the request's authentication is older than
 * `reauthenticateAfterMs` (admin/authenticate-request.ts and customer/authenticate-request.ts).
 */
export async function untilReauthenticationIsDue(t: TestContext, sendHead: () => void): Promise<void> {
  const { mock } = t.mock.method(pg.Client.prototype, 'query')
  sendHead()
  await eventually('the API has authenticated the caller', () =>
    mock.calls.some(({ arguments: [query] }) => JSON.stringify(query).includes('users')),
  )
  mock.restore()
  await sleep(1_100)
}
