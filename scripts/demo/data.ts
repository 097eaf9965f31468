import pg from 'pg'
import { type Call, caller } from './calls.ts'
import { makeMail } from './mail.ts'
import { pick } from './noise.ts'

/**
 * Demo data: four plans, and forty projects with members, endpoints, API keys, domains and a history. Two
 * administrators create them through the API, so the audit log is genuine.
 *
 * The data is the same every time: values that look random come from a fixed sequence. Users and past mail cannot be
 * created through the API, so they are inserted directly into the tables. Some domains are marked as verified the same
 * way, because their DNS records do not exist. All domains use the provider `service`, because SES needs an account.
 */
export interface Demo {
  url: string
  databaseUrl: string
  administrator: string
  tokenOf(email: string): Promise<string>
  makeAdmin(email: string, name: string): Promise<void>
  say(line: string): void
}

const secondAdministrator = 'grace@example.com'

export async function seedDemoData({
  url,
  databaseUrl,
  administrator,
  tokenOf,
  makeAdmin,
  say,
}: Demo): Promise<void> {
  say('Creating demo data…')
  const database = new pg.Client({ connectionString: databaseUrl, options: '-c role=postern_admin' })
  await database.connect()
  try {
    await makeAdmin(secondAdministrator, 'Grace Example')
    const owners = await makePeople(database)
    const ada = caller(url, await tokenOf(administrator))
    const grace = caller(url, await tokenOf(secondAdministrator))
    const plans = await makePlans(ada)
    const ids: number[] = []
    for (const [index, name] of projectNames.entries()) {
      const by = index % 3 === 0 ? grace : ada
      ids.push(await makeProject({ by, name, index, owners, plans }))
      if (index % 10 === 9) say(`  ${index + 1} of ${projectNames.length} projects`)
    }
    await showVerified(database)
    say('  thirty days of mail')
    await makeMail(databaseUrl, ids)
  } finally {
    await database.end()
  }
}

const projectNames = [
  'Acme Shop',
  'Birch & Co',
  'Blue Harbour',
  'Brightside Clinic',
  'Cedar Analytics',
  'Copper Kettle',
  'Daybreak News',
  'Delta Freight',
  'Ember Studio',
  'Evergreen Rentals',
  'Fable Books',
  'Field Notes',
  'Foxglove Garden',
  'Granite Bank',
  'Halcyon Travel',
  'Harvest Box',
  'Inkwell Press',
  'Juniper Health',
  'Kestrel Drones',
  'Lantern Events',
  'Lighthouse School',
  'Maple Street Bakery',
  'Meridian Maps',
  'Nimbus Weather',
  'Northwind Traders',
  'Oak Furniture',
  'Orchard Foods',
  'Paper Crane',
  'Pebble Games',
  'Quarry Tools',
  'Riverbend Housing',
  'Saffron Kitchen',
  'Silver Birch Hotel',
  'Slate Software',
  'Tandem Bikes',
  'Thistle & Thorn',
  'Umbra Security',
  'Vellum Letters',
  'Wavelength Radio',
  'Yarrow Wellness',
]

const firstNames = [
  'Ana',
  'Bo',
  'Chidi',
  'Dara',
  'Elif',
  'Farid',
  'Greta',
  'Hugo',
  'Ines',
  'Jun',
  'Kofi',
  'Lena',
]
const lastNames = [
  'Abe',
  'Berg',
  'Costa',
  'Diallo',
  'Evans',
  'Fischer',
  'Garcia',
  'Haddad',
  'Ivanov',
  'Jensen',
]

/** Sixty users, who become project owners. */
async function makePeople(database: pg.Client): Promise<{ id: number; email: string }[]> {
  const people = Array.from({ length: 60 }, (_, n) => {
    const [first, last] = [pick(firstNames, n * 7), pick(lastNames, n * 3 + Math.floor(n / 12))]
    return { name: `${first} ${last}`, email: `${first}.${last}.${n + 1}@example.net`.toLowerCase() }
  })
  const { rows } = await database.query<{ id: string; email: string }>(
    `with made as (
       insert into control.users (email, name)
       select email, name from unnest($1::text[], $2::text[]) as person (email, name)
       on conflict (email) do update set name = excluded.name returning id, email
     ) select id, email from made order by id`,
    [people.map(({ email }) => email), people.map(({ name }) => name)],
  )
  return rows.map(({ id, email }) => ({ id: Number(id), email }))
}

const planConfigs = [
  {
    name: 'Free',
    support_level: 'community',
    max_domains: 1,
    max_users: 2,
    max_mails_per_day: 200,
    max_mails_per_month: 3_000,
    price: 0,
    billing_product_id: null,
    description: 'For evaluation.',
  },
  {
    name: 'Starter',
    support_level: 'email',
    max_domains: 5,
    max_users: 5,
    max_mails_per_day: 5_000,
    max_mails_per_month: 50_000,
    price: 19,
    billing_product_id: 'prod_starter',
    description: 'For a first product.',
  },
  {
    name: 'Business',
    support_level: 'priority',
    max_domains: 50,
    max_users: 25,
    max_mails_per_day: 50_000,
    max_mails_per_month: 1_000_000,
    price: 149.5,
    billing_product_id: 'prod_business',
    description: 'For teams that send every day.',
  },
  {
    name: 'Partner',
    support_level: 'priority',
    max_domains: 500,
    max_users: 100,
    max_mails_per_day: 1_000_000,
    max_mails_per_month: 20_000_000,
    price: 990,
    billing_product_id: 'prod_partner',
    description: 'By agreement.',
  },
]

async function makePlans(call: Call): Promise<number[]> {
  const ids: number[] = []
  for (const plan of planConfigs) ids.push((await call('POST', '/plans', { ...plan, is_active: true })).id)
  return ids
}

interface ProjectToMake {
  by: Call
  name: string
  index: number
  owners: { id: number; email: string }[]
  plans: number[]
}

const endpointKinds = [
  { name: 'Delivery events', events: ['message.delivered', 'message.bounced', 'message.complained'] },
  { name: 'Inbound mail', events: ['inbound.received'] },
  {
    name: 'Operations',
    events: ['domain.failed', 'endpoint.disabled', 'project.locked', 'project.unlocked'],
  },
]

async function makeProject({ by, name, index, owners, plans }: ProjectToMake): Promise<number> {
  const tier = [1, 0, 2, 1, 1, 0, 2, 1, 3, 0][index % 10] ?? 1
  const { id } = await by('POST', '/projects', {
    name,
    user_id: pick(owners, index).id,
    plan_id: pick(plans, tier),
  })
  const path = `/projects/${id}`
  const domain = `${name.toLowerCase().replace(/[^a-z]+/g, '-')}.example`
  if (tier > 0) {
    await by('PUT', `${path}/billing`, {
      billing_subscription_id: `sub_${1000 + index}`,
      billing_subscription_status: index % 11 === 4 ? 'past_due' : index % 7 === 6 ? 'trialing' : 'active',
      billing_product_id: planConfigs[tier]?.billing_product_id ?? null,
    })
  }
  await makeMembers(by, path, index, owners, domain)
  for (const kind of endpointKinds.slice(0, (index % 3) + (tier > 0 ? 1 : 0))) {
    const slug = kind.name.toLowerCase().replaceAll(' ', '-')
    await by('POST', `${path}/endpoints`, { ...kind, url: `https://hooks.${domain}/${slug}` })
  }
  if (tier > 0) {
    await by('POST', `${path}/api-keys`, {
      mode: index % 5 === 0 ? 'test' : 'live',
      name: 'Web shop',
      scopes: ['messages:send', 'messages:read'],
      domain_id: null,
      allowed_ips: index % 2 === 0 ? ['192.0.2.0/24'] : [],
      expires_at: null,
    })
  }
  await makeHistory(by, path, index, plans)
  if (index % 3 !== 0) await makeDomains(by, path, index, domain)
  return id
}

async function makeMembers(
  by: Call,
  path: string,
  index: number,
  owners: { email: string }[],
  domain: string,
): Promise<void> {
  const roles = ['admin', 'developer', 'viewer']
  // The Free plan allows two members, so some of these requests exceed the limit and state a reason.
  for (let n = 0; n < index % 4; n++) {
    await by('POST', `${path}/members`, {
      email: n === 2 ? `invited@${domain}.net` : pick(owners, index + 11 * (n + 1)).email,
      role: pick(roles, index + n),
      ...(n > 0 ? { reason: 'Agreed with sales for the trial period' } : {}),
    })
  }
}

/** Creates one or two domains; some are renamed afterwards. */
async function makeDomains(by: Call, path: string, index: number, name: string): Promise<void> {
  await by('PATCH', path, { allow_service_mta: true, reason: 'Own addresses agreed in the contract' })
  const add = (host: string) =>
    by('POST', `${path}/domains`, {
      name: `${host}.${name}`,
      mta_provider: 'service',
      // The Free plan allows one domain, so some of these requests exceed the limit.
      ...(host === 'mail' ? {} : { reason: 'Second brand, agreed with sales' }),
    })
  const { id } = await add('mail')
  if (index % 4 === 1) await add('news')
  if (index % 8 === 4) await by('PATCH', `${path}/domains/${id}`, { name: `post.${name}` })
}

/** Marks two out of three domains as verified and disables further checks, because their DNS records do not exist. */
async function showVerified(database: pg.Client): Promise<void> {
  const chosen = `select id from control.domains where id % 3 <> 0`
  await database.query(
    `update control.dkim_keys as keys set state = 'active', activated_at = postern.now()
       from control.identities as identities
      where identities.id = keys.identity_id and identities.retiring_at is null and keys.state = 'pending'
        and identities.domain_id in (${chosen})`,
  )
  await database.query(`update control.dns_records set status = 'verified' where domain_id in (${chosen})`)
  await database.query(
    `update control.domains set status = 'verified', verified_at = postern.now(), last_checked_at = postern.now(),
            last_check_error = null, failing_since = null, checks_failed = 0, next_check_at = null
      where id in (${chosen})`,
  )
}

/** Makes typical administrative changes. */
async function makeHistory(by: Call, path: string, index: number, plans: number[]): Promise<void> {
  const acts: [when: boolean, body: object][] = [
    [index % 8 === 3, { is_locked: true, reason: 'Card testing through the sign-up form' }],
    [index % 16 === 3, { is_locked: false, reason: 'Form now has a captcha; checked with the owner' }],
    [index % 9 === 5, { reputation_score: 95, reason: 'Complaints came from one list that was removed' }],
    [index % 10 === 7, { admin_plan_id: plans[2], reason: 'Extra volume for the autumn campaign' }],
    [index % 20 === 7, { admin_plan_id: null, reason: 'Campaign is over' }],
    [
      index % 13 === 12,
      { admin_subscription_status: 'active', reason: 'Pays by invoice, not through billing' },
    ],
    [index % 5 === 4, { name: `${projectNames[index]} (EU)` }],
  ]
  for (const [when, body] of acts) if (when) await by('PATCH', path, body)
}
