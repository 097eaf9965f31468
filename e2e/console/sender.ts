import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { Caller } from '../caller.ts'
import { body } from '../stage.ts'
import type { Desk } from './admin-session.ts'
import { furnish } from './seed.ts'

/** A project that can send: with a domain that counts as verified, and a key. */
export interface Sender {
  project: { id: number; name: string }
  domain: { id: number; name: string }
  /** The customer's own program. */
  program: Caller
  path: string
  /** Accepted; the id of the message. */
  send(mail: object): Promise<string>
}

const scopes = ['messages:send', 'messages:read', 'suppressions:read', 'suppressions:write', 'usage:read']

export async function makeSender(desk: Desk, host = 'acme.example'): Promise<Sender> {
  const { admin, database, url } = desk
  const { project } = await furnish(desk)
  const path = `/admin/projects/${project.id}`
  const domain = await body<{ id: number; name: string }>(
    201,
    admin.post(`${path}/domains`, { name: host, mta_provider: 'service' }),
  )
  await eventually(`${host} is registered`, async () => {
    const { identity } = (await admin.get(`${path}/domains/${domain.id}`)).body
    return identity.state === 'registered'
  })
  await declareVerified(database, domain.id)
  const { secret } = await body<{ secret: string }>(
    201,
    admin.post(`${path}/api-keys`, {
      ...{ mode: 'live', name: 'Web shop', scopes, domain_id: null },
      ...{ allowed_ips: [], expires_at: null, is_active: true },
    }),
  )
  const program = new Caller(url, secret)
  return {
    project,
    domain,
    program,
    path,
    async send(mail) {
      const whole = { from: `Shop <orders@${host}>`, subject: 'Your order', text: 'It is on its way.' }
      return (await body<{ id: string }>(202, program.post('/messages', { ...whole, ...mail }))).id
    },
  }
}

/** Its records are nowhere, so nobody can find them: said in the database, as it would stand there if they were. */
async function declareVerified(database: Desk['database'], domainId: number): Promise<void> {
  await database.query(
    `update control.dkim_keys as keys set state = 'active', activated_at = postern.now()
       from control.identities as identities
      where identities.id = keys.identity_id and identities.domain_id = $1 and keys.state = 'pending'`,
    [domainId],
  )
  await database.query(`update control.dns_records set status = 'verified' where domain_id = $1`, [domainId])
  await database.query(
    `update control.domains set status = 'verified', verified_at = postern.now(), next_check_at = null where id = $1`,
    [domainId],
  )
}
