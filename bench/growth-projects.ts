import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type pg from 'pg'

/**
 * Projects inserted by SQL, each with an owner, a verified domain with its identity and key, and an API key. Ids match:
 * project 7 has domain 7, identity 7 and API key 7.
 */
export interface Member {
  projectId: number
  domain: string
  secret: string
}

export const memberOf = (projectId: number): Member => ({
  projectId,
  domain: `sender${projectId}.example.com`,
  secret: secretOf(projectId),
})

/** Adds the missing projects. The first `openable` projects have API keys with known secrets (`memberOf`). */
export async function fillProjects(client: pg.Client, count: number, openable: number): Promise<void> {
  const { rows } = await client.query<{ last: string }>(
    'select coalesce(max(id), 0) as last from control.projects',
  )
  const first = Number(rows[0]?.last) + 1
  if (first > count) return
  const hashes = Array.from({ length: Math.max(0, Math.min(count, openable) - first + 1) }, (_, place) =>
    createHash('sha256')
      .update(secretOf(first + place))
      .digest('hex'),
  )
  // Triggers are disabled: foreign keys are not checked row by row, and the rows that triggers would write are inserted
  // at the end.
  await client.query('set session_replication_role = replica')
  await client.query('set synchronous_commit = off')
  for (const statement of statements(first, count)) await client.query(statement)
  await client.query(
    `insert into control.api_keys (id, project_id, name, is_test, prefix, secret_hash, scopes) overriding system value
     select n, n, 'Shop', false, 'pk_live_0000',
            coalesce(decode(($3::text[])[n - $1::bigint + 1], 'hex'), sha256(int8send(n))), '{messages:send}'
       from generate_series($1::bigint, $2::bigint) as n`,
    [first, count, hashes],
  )
  await client.query('reset session_replication_role')
  await client.query('reset synchronous_commit')
  await client.query('vacuum analyze')
}

const statements = (first: number, last: number): string[] => {
  const each = `generate_series(${first}, ${last}) as n`
  return [
    `insert into control.plans (name, description, support_level, max_domains, max_users, max_mails_per_day,
                                max_mails_per_month, price)
     select 'Bench', 'For measuring.', 'email', 1000, 1000, 1000000000, 1000000000, 0
      where not exists (select from control.plans)`,
    `insert into control.users (id, email, name) overriding system value
     select 1000 + n, 'person' || n || '@example.com', 'Person ' || n from ${each}`,
    `insert into control.projects (id, user_id, name, allow_service_mta, plan_id) overriding system value
     select n, 1000 + n, 'Sender ' || n, true, (select min(id) from control.plans) from ${each}`,
    `insert into control.project_stats (project_id) select n from ${each}`,
    `insert into control.project_listing (project_id, folded_name, is_locked, plan_id, reputation_score, member_count,
                                          domain_count)
     select n, 'sender ' || n, false, (select min(id) from control.plans), 100, 1, 1 from ${each}`,
    `insert into control.members (project_id, user_id, email, name, role, joined_at)
     select n, 1000 + n, 'person' || n || '@example.com', 'Person ' || n, 'owner', postern.now() from ${each}`,
    `insert into control.domains (id, project_id, name, mta_provider, status, ownership_token, verified_at,
                                  last_checked_at, next_check_at, failing_since) overriding system value
     select n, n, 'sender' || n || '.example.com', 'service', 'verified', md5(n::text), postern.now(), postern.now(),
            postern.now() + interval '1 day', null from ${each}`,
    `insert into control.identities (id, project_id, domain_id, name, provider, state, reconcile_at, registered_at)
            overriding system value
     select n, n, n, 'sender' || n || '.example.com', 'service', 'registered', null, postern.now() from ${each}`,
    // A placeholder with the size of a real key; nothing is signed with it.
    `insert into control.dkim_keys (id, project_id, identity_id, selector, public_key, encrypted_private_key, state,
                                    activated_at)
     select n, n, n, 'p' || n, repeat(md5(n::text), 12), decode(repeat(md5(n::text), 76), 'hex'), 'active', postern.now()
       from ${each}`,
  ]
}

// The format of an API key (docs/guide): 43 characters and a checksum.
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function secretOf(projectId: number): string {
  const unchecked = `pk_live_${String(projectId).padStart(43, '0')}`
  let rest = crc32(unchecked)
  let checksum = ''
  for (let place = 0; place < 6; place++) {
    checksum = digits.charAt(rest % 62) + checksum
    rest = Math.floor(rest / 62)
  }
  return unchecked + checksum
}
