import assert from 'node:assert/strict'
import type { TestApi } from '../harness/api.ts'
import type { TestDatabase } from '../harness/database.ts'
import { dump } from '../harness/dump.ts'

/** Asserts that the secret is not in any table or in the log. */
export async function assertKeyKeptNowhere(
  database: TestDatabase,
  { logLines }: TestApi,
  secret: string,
): Promise<void> {
  // Excludes the visible prefix. No other part may appear.
  const hidden = secret.slice('pk_live_0000'.length)
  const inHexadecimal = Buffer.from(hidden).toString('hex')
  for (const line of [...logLines, ...(await dump(database))]) {
    for (const part of [hidden.slice(0, 12), hidden.slice(-12), inHexadecimal]) {
      assert.ok(!line.includes(part), `the secret is in: ${line}`)
    }
  }
}
