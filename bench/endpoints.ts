import type pg from 'pg'
import type { Postern } from './postern.ts'

export interface Endpoint {
  id: number
  projectId: number
}

const requestsAtOnce = 8
const event = 'message.delivered'

/**
 * Creates endpoints through the API, which encrypts a secret for each, and then sets URLs that the API would reject.
 * Returns the endpoints in the order of the argument.
 */
export async function makeEndpoints(
  { url, token, superuser }: Postern,
  wanted: readonly { projectId: number; target: string }[],
): Promise<Endpoint[]> {
  const endpoints: Endpoint[] = Array(wanted.length)
  let bearer = await token()
  let next = 0
  const makeOn = async (): Promise<void> => {
    for (let place = next++; place < wanted.length; place = next++) {
      const { projectId = 0 } = wanted[place] ?? {}
      if (next % 2000 === 0) bearer = await token()
      const response = await fetch(`${url}/v1/admin/projects/${projectId}/endpoints`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ name: 'Bench', url: 'https://hooks.example.com/', events: [event], is_active: true },
          reason: 'To be measured',
        }),
      })
      if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`)
      const { resource } = (await response.json()) as { resource: { id: number } }
      endpoints[place] = { id: resource.id, projectId }
    }
  }
  await Promise.all(Array.from({ length: requestsAtOnce }, makeOn))
  await superuser.query(
    `update control.endpoints set url = wanted.url
       from unnest($1::bigint[], $2::text[]) as wanted (id, url) where endpoints.id = wanted.id`,
    [endpoints.map(({ id }) => id), wanted.map(({ target }) => target)],
  )
  return endpoints
}

/**
 * Inserts this many events for each endpoint, each for a different message, in the same form as the service but without
 * the fan-out. Returns their ids.
 */
export async function writeEvents(
  client: pg.Client,
  endpoints: readonly Endpoint[],
  each: number,
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `with wanted as materialized (
       select * from unnest($1::bigint[], $2::bigint[]) as wanted (endpoint_id, project_id)
     ), made as materialized (
       select endpoint_id, project_id, postern.uuid7(postern.now()) as id, postern.uuid7(postern.now()) as message_id,
              no
         from wanted, generate_series(1, $3::int) as no
     ), message as (
       insert into mail.messages (id, project_id, identity_id, from_address, subject, recipient_count, size_bytes, tags,
                                  metadata)
       select message_id, project_id, 1, 'shop@example.com', 'Your order', 1, 6000, '{orders}', '{"order": "4711"}' from made
     ), event as (
       insert into mail.events (id, project_id, type, message_id, recipient_no, data)
       select id, project_id, '${event}', message_id, 0,
              jsonb_build_object('recipient', 'ada' || no || '@example.net', 'status', '2.0.0',
                                 'diagnostic', '250 2.0.0 Ok: queued as 4bXfgt0R2Jz9sT')
         from made
     ), delivery as (
       insert into mail.deliveries (endpoint_id, event_id, project_id, gives_up_at)
       select endpoint_id, id, project_id, postern.now() + interval '28 hours' from made
     ), wake as (
       insert into mail.wakes (endpoint_id, project_id) select endpoint_id, project_id from wanted
     )
     select id from made`,
    [endpoints.map(({ id }) => id), endpoints.map(({ projectId }) => projectId), each],
  )
  return rows.map(({ id }) => id)
}

/** Removes all pending deliveries and attempts. */
export async function forgetWebhooks({ superuser }: Postern): Promise<void> {
  await superuser.query(
    `truncate mail.events, mail.messages, mail.deliveries, mail.wakes, mail.delivery_attempts, mail.outbox`,
  )
  await superuser.query(
    'update mail.endpoint_queues set due_at = null, leased_until = null, backoff_until = null',
  )
}
