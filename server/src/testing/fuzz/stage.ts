import { mailRows } from '../fixtures/mail-rows.ts'
import { CookieJar } from '../harness/cookie-jar.ts'
import type { TestDatabase } from '../harness/database.ts'
import { totpCode } from '../harness/totp.ts'
import { Caller, type Stage } from './caller.ts'
import { ServedDocument } from './document.ts'
import { parsed } from './judge.ts'
import { firstMail } from './model/mail.ts'
import type { Service } from './service.ts'
import { plainly } from './spoken.ts'
import { Tally } from './tally.ts'
import { Wild } from './wild.ts'

/** Everything that a run needs to be there before its first request counts. */
export interface Setting {
  stage: Stage
  wild: Wild
  /** A project that nothing changes. */
  projectId: number
  stop(): void
}

// A token lives for ten minutes.
const tokenRenewalMs = 4 * 60_000

export async function setStage(service: Service, database: TestDatabase): Promise<Setting> {
  const actor = await service.makeAdmin('requests@example.com')
  let token = await service.tokenOf(actor.email)
  const renew = async () => {
    token = await service.tokenOf(actor.email)
  }
  const renewal = setInterval(renew, tokenRenewalMs)
  renewal.unref()
  const { makeMail } = mailRows(database)
  const stage: Stage = {
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
  const { wild, projectId } = await makeWild(stage, await sessionCookie(service, database))
  return { stage, wild, projectId, stop: () => clearInterval(renewal) }
}

async function makeWild(stage: Stage, cookie: string): Promise<{ wild: Wild; projectId: number }> {
  const apart = { ...stage, tally: new Tally() }
  const caller = new Caller(apart)
  const make = async (id: string, body: Record<string, unknown>): Promise<number> => {
    const operation = stage.document.operation(id)
    const answer = await caller.send(operation, plainly(operation, stage.token(), { params: {}, body }))
    return (parsed(answer) as { id: number }).id
  }
  await stage.makeUsers('wild', 4)
  const operation = stage.document.operation('users.list')
  const found = await caller.send(
    operation,
    plainly(operation, stage.token(), { params: {}, query: { q: 'wild' } }),
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
  const wild = new Wild(stage, cookie)
  wild.know('users', ...users)
  wild.know('plans', ...plans)
  for (const name of ['Wild', 'Wilder']) {
    const id = await project(name, plan)
    wild.know('projects', id)
    await stage.makeMail(id, firstMail(name.toLowerCase()))
    const list = stage.document.operation('messages.list')
    const page = await caller.send(list, plainly(list, stage.token(), { params: { project_id: id } }))
    wild.know('messages', ...(parsed(page) as { data: { id: string }[] }).data.map((one) => one.id))
  }
  wild.know('audit', 1, 2, 3)
  const projectId = await project('Still', still)
  caller.close()
  return { wild, projectId }
}

/** Of somebody who is signed in with both factors and does nothing else; an administrator no more, so that one is alone. */
async function sessionCookie(service: Service, database: TestDatabase): Promise<string> {
  const { email, password, totpUri } = await service.makeAdmin('session@example.com')
  const browser = new CookieJar(service.url)
  await browser.post('/v1/auth/sign-in', { email, password })
  const answer = await browser.post('/v1/auth/totp/code', { code: totpCode(totpUri) })
  if (answer.status !== 204) throw new Error(`nobody could sign in: ${answer.status}`)
  await database.query(`update control.users set role = 'user' where email = $1`, [email])
  const cookies = answer.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
  return cookies.join('; ')
}
