import { mailRows } from '../fixtures/mail-rows.ts'
import { CookieJar } from '../harness/cookie-jar.ts'
import type { TestDatabase } from '../harness/database.ts'
import { totpCode } from '../harness/totp.ts'
import { Caller, type FuzzContext } from './caller.ts'
import { parsed } from './check-response.ts'
import { ServedDocument } from './document.ts'
import { encodePlain } from './encode.ts'
import { firstMail } from './model/mail.ts'
import { SchemaRequests } from './schema-requests.ts'
import type { Service } from './service.ts'
import { Tally } from './tally.ts'

/** Everything that a run needs before its first request. */
export interface RunSetup {
  context: FuzzContext
  schemaRequests: SchemaRequests
  /** A project that no request changes. */
  projectId: number
  stop(): void
}

// A token is valid for ten minutes.
const tokenRenewalMs = 4 * 60_000

export async function setUpRun(service: Service, database: TestDatabase): Promise<RunSetup> {
  const actor = await service.makeAdmin('requests@example.com')
  let token = await service.tokenOf(actor.email)
  const renew = async () => {
    token = await service.tokenOf(actor.email)
  }
  const renewal = setInterval(renew, tokenRenewalMs)
  renewal.unref()
  const { makeMail } = mailRows(database)
  const context: FuzzContext = {
    url: service.url,
    document: new ServedDocument(await (await fetch(`${service.url}/openapi.json`)).text()),
    tally: new Tally(),
    token: () => token,
    renew,
    tokenOf: service.tokenOf,
    actor: { id: actor.id, email: actor.email },
    async makeUsers(mark, count) {
      await database.query(
        `insert into control.users (email, name, two_factor_enabled)
         select $1 || '.' || n || '@example.net', 'Person ' || n, n % 2 = 1 from generate_series(1, $2) as n`,
        [mark, count],
      )
    },
    async makeMail(projectId, { messages, suppressed }) {
      for (const { status, address, tag } of messages.toReversed()) {
        await makeMail(projectId, {
          ...{ address, status, tags: [tag] },
          ...(status === 'scheduled' ? { sendIn: '20 days' } : {}),
          ...(status === 'queued' ? { dispatch: 'ready' } : {}),
        })
      }
      await database.query(
        `insert into mail.suppressions (project_id, address, reason) select $1, unnest($2::text[]), 'manual'`,
        [projectId, suppressed],
      )
    },
  }
  const { schemaRequests, projectId } = await makeSchemaRequests(
    context,
    await sessionCookie(service, database),
  )
  return { context, schemaRequests, projectId, stop: () => clearInterval(renewal) }
}

async function makeSchemaRequests(
  context: FuzzContext,
  cookie: string,
): Promise<{ schemaRequests: SchemaRequests; projectId: number }> {
  const separate = { ...context, tally: new Tally() }
  const caller = new Caller(separate)
  const make = async (id: string, body: Record<string, unknown>): Promise<number> => {
    const operation = context.document.operation(id)
    const response = await caller.send(
      operation,
      encodePlain(operation, context.token(), { params: {}, body }),
    )
    return (parsed(response) as { id: number }).id
  }
  await context.makeUsers('wild', 4)
  const operation = context.document.operation('users.list')
  const found = await caller.send(
    operation,
    encodePlain(operation, context.token(), { params: {}, query: { q: 'wild' } }),
  )
  const users = (parsed(found) as { data: { id: number }[] }).data.map(({ id }) => id)
  const limits = { max_domains: 10, max_users: 10, max_mails_per_day: 100, max_mails_per_month: 1000 }
  const rest = {
    description: '',
    support_level: 'email',
    billing_product_id: null,
    price: 1,
    is_active: true,
  }
  const plans = [
    await make('plans.create', { name: 'Wild', ...limits, ...rest }),
    await make('plans.create', { name: 'Wilder', ...limits, ...rest }),
    await make('plans.create', { name: 'Still', ...limits, ...rest }),
  ]
  const [still, plan] = [plans.pop(), plans[0]]
  const project = (name: string, plan_id: number | undefined) =>
    make('projects.create', { name, user_id: users[0], plan_id })
  const schemaRequests = new SchemaRequests(context, cookie)
  schemaRequests.addIds('users', ...users)
  schemaRequests.addIds('plans', ...plans)
  for (const name of ['Wild', 'Wilder']) {
    const id = await project(name, plan)
    schemaRequests.addIds('projects', id)
    await context.makeMail(id, firstMail(name.toLowerCase()))
    const list = context.document.operation('messages.list')
    const page = await caller.send(list, encodePlain(list, context.token(), { params: { project_id: id } }))
    schemaRequests.addIds(
      'messages',
      ...(parsed(page) as { data: { id: string }[] }).data.map((one) => one.id),
    )
  }
  schemaRequests.addIds('audit', 1, 2, 3)
  const projectId = await project('Still', still)
  caller.close()
  return { schemaRequests, projectId }
}

/**
 * The session cookie of a user who has completed two-factor authentication. The user's administrator role is then
 * revoked, so the actor remains the only administrator.
 */
async function sessionCookie(service: Service, database: TestDatabase): Promise<string> {
  const { email, password, totpUri } = await service.makeAdmin('session@example.com')
  const browser = new CookieJar(service.url)
  await browser.post('/v1/auth/sign-in', { email, password })
  const response = await browser.post('/v1/auth/totp/code', { code: totpCode(totpUri) })
  if (response.status !== 204) throw new Error(`sign-in failed: ${response.status}`)
  await database.query(`update control.users set role = 'user' where email = $1`, [email])
  const cookies = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
  return cookies.join('; ')
}
