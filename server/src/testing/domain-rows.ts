import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { TestDatabase } from './database.ts'

/** What names a domain or its identity, written straight into the tables. */
export function domainRows(database: TestDatabase) {
  const insert = async (text: string, values: unknown[]): Promise<number> => {
    const [row] = await database.query<{ id: string }>(`insert into ${text} returning id`, values)
    return Number(row?.id ?? assert.fail(`nothing was written: ${text}`))
  }

  return {
    addressRoute: (
      { id, project_id }: { id: number; project_id: number },
      address: string,
      { isActive = true } = {},
    ): Promise<number> =>
      insert(
        `control.routes (project_id, domain_id, match, address, action, is_active)
         values ($1, $2, 'address', $3, 'drop', $4)`,
        [project_id, id, address, isActive],
      ),

    catchAll: ({ id, project_id }: { id: number; project_id: number }): Promise<number> =>
      insert(`control.routes (project_id, domain_id, match, action) values ($1, $2, 'catch_all', 'reject')`, [
        project_id,
        id,
      ]),

    boundKey: ({ id, project_id }: { id: number; project_id: number }): Promise<number> =>
      insert(
        `control.api_keys (project_id, name, is_test, prefix, secret_hash, scopes, domain_id)
         values ($1, 'Bound', false, 'pk_live_', $2, '{messages.send}', $3)`,
        [project_id, createHash('sha256').update(randomBytes(8)).digest(), id],
      ),

    /** Mail that was accepted under an identity and is not gone yet. */
    queueMail: async (projectId: number, identityId: number, count: number): Promise<void> => {
      await database.query(
        `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
         select gen_random_uuid(), 0, $1, $2, 'service', 'someone@example.net'
           from generate_series(1, $3)`,
        [projectId, identityId, count],
      )
    },

    routes: async (domainId: number): Promise<RouteRow[]> =>
      database.query<RouteRow>(
        `select id::int, address, is_active, version::int, updated_at > created_at as was_touched
           from control.routes where domain_id = $1 order by id`,
        [domainId],
      ),

    identities: (projectId: number): Promise<IdentityRow[]> =>
      database.query<IdentityRow>(
        `select id::int, domain_id::int, name, provider, state, retiring_at is null as is_living,
                settle_at is not null as is_due
           from control.identities where project_id = $1 order by id`,
        [projectId],
      ),

    keys: (identityId: number): Promise<KeyRow[]> =>
      database.query<KeyRow>(
        `select id::int, selector, state, encrypted_private_key as sealed from control.dkim_keys
          where identity_id = $1 order by id`,
        [identityId],
      ),

    /** What the worker was asked to do, oldest first. */
    jobs: (queue: string): Promise<Record<string, number>[]> =>
      database
        .query<{ data: Record<string, number> }>(
          `select data from jobs.job where name = $1 order by created_on, (data->>'identity_id')::int`,
          [queue],
        )
        .then((rows) => rows.map(({ data }) => data)),
  }
}

export interface RouteRow {
  id: number
  address: string | null
  is_active: boolean
  version: number
  was_touched: boolean
}

export interface IdentityRow {
  id: number
  domain_id: number | null
  name: string
  provider: string
  state: string
  is_living: boolean
  is_due: boolean
}

export interface KeyRow {
  id: number
  selector: string
  state: string
  sealed: Buffer | null
}
