import type { Context } from '../context/context.ts'
import { recordShellToken } from '../core/control/access/administrators.ts'
import { UsageError } from '../platform/errors.ts'
import { command, emailOf, print } from './command.ts'
import { localApi } from './local-api.ts'
import { withContext } from './with-context.ts'

/**
 * `postern project create`: creates everything that is needed to send a first message, except for an administrator: a
 * project with a plan, a domain and an API key. It calls this machine's API, so all checks and the audit log apply as
 * in the console.
 */
export const project = command('project', {
  async create({ email, domain, name = domain, json }) {
    await withContext(async (context) => {
      const made = await make(await administrator(context, emailOf(email)), domain, name)
      print(json, made, () => shown(domain, localApi(context.config), made))
    })
  },
})

interface Administrator {
  userId: number
  call<T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<T>
}

async function administrator({ config, db, signIn }: Context, email: string): Promise<Administrator> {
  const { token, user } = await signIn.issueShellToken(email)
  await recordShellToken(db.admin, user)
  return {
    userId: user.id,
    async call<T>(method: string, path: string, body?: object) {
      const response = await fetch(`${localApi(config)}/v1/admin${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(15_000),
      }).catch(() => {
        throw new UsageError(
          `No response from ${localApi(config)}. Start \`postern api\` or \`postern all\`.`,
        )
      })
      const answer = await response.json()
      if (response.ok) return answer as T
      const { error, message } = answer as { error: string; message: string }
      throw new UsageError(`${message} (${error})`)
    },
  }
}

interface Made {
  key: string
  records: { type: string; name: string; value: string }[]
}

const reason = 'postern project create'
const keyName = 'First key'

interface List<Item> {
  data: Item[]
}

interface Domain {
  name: string
  dns_records: Made['records']
}

/** Reuses resources created by an earlier call: a mistyped domain leaves a project behind. */
async function make({ userId, call }: Administrator, domainName: string, name: string): Promise<Made> {
  const { data: projects } = await call<List<{ id: number; name: string; user_id: number }>>(
    'GET',
    `/projects?q=${encodeURIComponent(name)}`,
  )
  const { id } =
    // Names are not unique: another user's project may have the same name.
    projects.find((project) => project.name === name && project.user_id === userId) ??
    (await call<{ id: number }>('POST', '/projects', {
      ...{ name, user_id: userId, plan_id: await planFor(call), reason },
    }))
  const path = `/projects/${id}`
  const { data: keys } = await call<List<{ name: string }>>('GET', `${path}/api-keys`)
  if (keys.some((key) => key.name === keyName))
    throw new UsageError(
      `The project "${name}" already has an API key. Continue in the console, at /console.`,
    )
  await call('PATCH', path, { allow_service_mta: true, reason })
  const { data: domains } = await call<List<Domain>>('GET', `${path}/domains`)
  const domain =
    domains.find((one) => one.name === domainName) ??
    (await call<Domain>('POST', `${path}/domains`, { name: domainName, mta_provider: 'service', reason }))
  const { secret: key } = await call<{ secret: string }>('POST', `${path}/api-keys`, {
    ...{ mode: 'live', name: keyName, scopes: ['messages:send', 'messages:read'], domain_id: null },
    ...{ allowed_ips: [], expires_at: null, is_active: true, reason },
  })
  return { key, records: domain.dns_records }
}

/** The first active plan; if there is none, a new plan with generous limits. */
async function planFor(call: Administrator['call']): Promise<number> {
  const { data } = await call<List<{ id: number; is_active: boolean }>>('GET', '/plans')
  const plan = data.find(({ is_active }) => is_active)
  if (plan) return plan.id
  const made = await call<{ id: number }>('POST', '/plans', {
    ...{ name: 'Standard', description: 'Created for the first project.', support_level: 'community' },
    ...{ max_domains: 10, max_users: 10, max_mails_per_day: 10_000, max_mails_per_month: 200_000 },
    ...{ billing_product_id: null, price: 0, is_active: true, reason },
  })
  return made.id
}

function shown(domain: string, url: string, { key, records }: Made): string {
  const lines = records.map(({ type, name, value }) => `  ${name}  ${type}  ${value}`)
  return `Project created. Publish these DNS records; Postern checks them after 1, 2, 4 … minutes:

${lines.join('\n')}

API key (cannot be shown again):

  ${key}

Once the domain is verified, send a first message:

  curl ${url}/v1/messages -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"from": "hello@${domain}", "to": ["you@example.com"], "subject": "Hello", "text": "It works."}'`
}
