import assert from 'node:assert/strict'
import type { TestApi } from '../harness/api.ts'
import type { TestDatabase } from '../harness/database.ts'

/** The secret that currently signs deliveries to the endpoint, decrypted. */
export async function livingSecret(
  database: TestDatabase,
  { context: { db, vault } }: TestApi,
  { project_id, id }: { project_id: number; id: number },
): Promise<string> {
  const [row] = await database.query<{ encrypted_secret: Buffer }>(
    'select encrypted_secret from control.endpoints where project_id = $1 and id = $2',
    [project_id, id],
  )
  const sealed = row?.encrypted_secret ?? assert.fail(`there is no endpoint ${id}`)
  const location = { table: 'control.endpoints', column: 'encrypted_secret', rowId: id }
  return db.admin.read((tx) => vault.open(tx, project_id, location, sealed))
}

/** Asserts that the secret is not in the audit log, a stored response or the process log. */
export async function assertKeptNowhere(
  database: TestDatabase,
  { logLines }: TestApi,
  secret: string,
): Promise<void> {
  const core = secret.slice('whsec_'.length, -4)
  assert.ok(!logLines.join('').includes(core), 'the secret is in the log')
  for (const table of ['endpoints', 'audit', 'audit_people', 'idempotency', 'outbox']) {
    const rows = await database.query(
      `select from control.${table} as kept where strpos(kept::text, $1) > 0 or strpos(kept::text, $2) > 0`,
      // A bytea is rendered in hexadecimal.
      [core, Buffer.from(core).toString('hex')],
    )
    assert.equal(rows.length, 0, `the secret is in control.${table}`)
  }
}
