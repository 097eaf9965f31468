import type { Postern } from './postern.ts'

/** A project without limits, with a domain and an API key. */
export interface Sender {
  projectId: number
  identityId: number
  apiKeyId: number
  domain: string
  secret: string
}

/** The ids are far apart, so that no two numbers in a capture are equal by chance. */
const first = { projects: 710_001, identities: 720_001, api_keys: 730_001, domains: 740_001 }

type Create = <T>(path: string, body: object) => Promise<T>

/** Creates an object through the administrative API. */
export async function creator(postern: Postern): Promise<Create> {
  const token = await postern.token()
  return async <T>(path: string, body: object): Promise<T> => {
    const response = await fetch(`${postern.url}/v1/admin${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, reason: 'To be measured' }),
    })
    if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
}

/** Creates projects with the same owner on a plan without limits, and returns their ids. */
export async function makeProjects({ superuser }: Postern, create: Create, count: number): Promise<number[]> {
  const { rows } = await superuser.query<{ id: string }>(
    `insert into control.users (email, name) values ('owner@example.com', 'Olive') returning id`,
  )
  const plan = await create<{ id: number }>('/plans', planWithoutLimits)
  const owner = { user_id: Number(rows[0]?.id), plan_id: plan.id }
  const ids: number[] = []
  for (let number = 1; number <= count; number++) {
    ids.push((await create<{ id: number }>('/projects', { name: `Sender ${number}`, ...owner })).id)
  }
  return ids
}

/** Creates senders through the API; their domains are marked as verified without DNS. */
export async function makeSenders(postern: Postern, count: number): Promise<Sender[]> {
  const { superuser } = postern
  const create = await creator(postern)
  for (const [table, id] of Object.entries(first)) {
    await superuser.query(`select setval('control.${table}_id_seq', $1, false)`, [id])
  }
  const senders: Sender[] = []
  for (const [index, projectId] of (await makeProjects(postern, create, count)).entries()) {
    await superuser.query('update control.projects set allow_service_mta = true where id = $1', [projectId])
    const at = `/projects/${projectId}`
    const name = `sender${index + 1}.example.com`
    const { identity } = await create<{ identity: { id: number } }>(`${at}/domains`, {
      name,
      mta_provider: 'service',
    })
    const key = await create<{ resource: { id: number }; secret: string }>(`${at}/api-keys`, keyForAll)
    senders.push({
      projectId,
      identityId: identity.id,
      apiKeyId: key.resource.id,
      domain: name,
      secret: key.secret,
    })
  }
  await superuser.query(
    `update control.domains set status = 'verified', verified_at = postern.now(),
                                next_check_at = postern.now() + interval '1 day'`,
  )
  await superuser.query(`update control.dkim_keys set state = 'active', activated_at = postern.now()`)
  await superuser.query(
    `update control.identities set state = 'registered', registered_at = postern.now(), reconcile_at = null`,
  )
  return senders
}

export const planWithoutLimits = {
  name: 'Bench',
  description: 'For measuring.',
  support_level: 'email',
  max_domains: 1000,
  max_users: 1000,
  max_mails_per_day: 1_000_000_000,
  max_mails_per_month: 1_000_000_000,
  billing_product_id: null,
  price: 0,
  is_active: true,
}

export const keyForAll = {
  name: 'Bench',
  mode: 'live',
  scopes: ['messages:send', 'messages:read'],
  domain_id: null,
  allowed_ips: [],
  expires_at: null,
  is_active: true,
}
