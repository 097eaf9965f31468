import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { patiently } from './calls.ts'

/** A customer for the app: the owner of the project that can send. */
export interface Customer {
  email: string
  password: string
}

const email = 'customer@example.com'

export async function makeDemoCustomer(
  { url, databaseUrl, token }: { url: string; databaseUrl: string; token: string },
  projectId: number,
  resetLinkOf: (email: string) => Promise<string>,
): Promise<Customer> {
  const userId = await makeUser(databaseUrl)
  const password = randomBytes(12).toString('base64url')
  const reset = /#(pwr_[\w-]+)/.exec(await resetLinkOf(email))?.[1]
  await call('POST', `${url}/v1/auth/password/reset`, { token: reset, new_password: password })
  await call(
    'PATCH',
    `${url}/v1/admin/projects/${projectId}`,
    { user_id: userId, reason: 'Demo customer' },
    token,
  )
  return { email, password }
}

async function makeUser(databaseUrl: string): Promise<number> {
  const database = new pg.Client({ connectionString: databaseUrl, options: '-c role=postern_admin' })
  await database.connect()
  try {
    const { rows } = await database.query<{ id: string }>(
      `insert into control.users (email, name) values ($1, 'Cleo Example')
       on conflict (email) do update set name = excluded.name returning id`,
      [email],
    )
    return Number(rows[0]?.id)
  } finally {
    await database.end()
  }
}

async function call(method: string, url: string, body: object, token?: string): Promise<void> {
  const response = await patiently(() =>
    fetch(url, {
      method,
      headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    }),
  )
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`)
}
