import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { Caller } from '../caller.ts'
import { body } from '../stage.ts'
import type { AdminSession } from './admin-session.ts'
import { seedProject } from './seed.ts'

/** A project that can send: it has a verified domain and an API key. */
export interface Sender {
  project: { id: number; name: string }
  domain: { id: number; name: string }
  /** The customer's API client. */
  program: Caller
  path: string
  /** Returns the id of the accepted message. */
  send(mail: object): Promise<string>
}

const scopes = ['messages:send', 'messages:read', 'suppressions:read', 'suppressions:write', 'usage:read']

export async function makeSender(
  session: AdminSession,
  host = 'acme.example',
  own?: Sender['project'],
): Promise<Sender> {
  const { admin, database, url } = session
  const project = own ?? (await seedProject(session)).project
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

/** Marks the domain as verified in the database, because its DNS records do not exist. */
async function declareVerified(database: AdminSession['database'], domainId: number): Promise<void> {
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
