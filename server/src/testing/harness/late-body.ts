import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { recordStatements } from './statements.ts'
import { eventually } from './waiting.ts'

/**
 * Sends the head of a request to an API in this process and waits until the request's authentication is older than
 * `reauthenticateAfterMs` (admin/authenticate-request.ts and customer/authenticate-request.ts).
 */
export async function untilReauthenticationIsDue(t: TestContext, sendHead: () => void): Promise<void> {
  const statements = recordStatements(t)
  sendHead()
  await eventually('the API has authenticated the caller', () => statements.about('users') > 0)
  statements.stop()
  await sleep(1_100)
}
