import pg from 'pg'
import { patiently } from './calls.ts'

export interface Sender {
  projectId: number
  secret: string
  domain: string
}

/** Creates an API key for a project that can send, through the administrative API. */
export async function makeDemoSender(url: string, databaseUrl: string, token: string): Promise<Sender> {
  const database = new pg.Client({ connectionString: databaseUrl, options: '-c role=postern_admin' })
  await database.connect()
  try {
    const { rows } = await database.query<{ project_id: string; name: string }>(
      `select domains.project_id, domains.name from control.domains as domains
         join control.projects as projects on projects.id = domains.project_id
        where domains.status = 'verified' and domains.mta_provider = 'service' and projects.allow_service_mta
          and not projects.is_locked
        order by domains.id limit 1`,
    )
    const [place] = rows
    if (!place) throw new Error('the demo data has no verified domain')
    const response = await patiently(() =>
      fetch(`${url}/v1/admin/projects/${place.project_id}/api-keys`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          mode: 'live',
          name: 'First mail',
          scopes: ['messages:send', 'messages:read', 'suppressions:read', 'suppressions:write', 'usage:read'],
          domain_id: null,
          allowed_ips: [],
          expires_at: null,
        }),
      }),
    )
    const { secret } = (await response.json()) as { secret: string }
    return { projectId: Number(place.project_id), secret, domain: place.name }
  } finally {
    await database.end()
  }
}
