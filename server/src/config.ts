import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { MasterKey } from './core/secrets/master-keys.ts'
import { readAddress } from './mail/address.ts'
import { UsageError } from './platform/errors.ts'
import {
  type Environment,
  integer,
  list,
  oneOf,
  readSettings,
  type SettingsOf,
  text,
  Wrong,
} from './platform/settings.ts'
import { regionOfTopic } from './providers/sns.ts'

/** Every setting of Postern. The same environment serves every `postern` command. */
export const settings = {
  databaseUrl: {
    name: 'POSTERN_DATABASE_URL',
    about:
      'Address of the PostgreSQL database, as the application logs in: postgres://user:password@host/database',
    secret: true,
    parse: postgresUrl,
  },
  databaseOwnerUrl: {
    name: 'POSTERN_DATABASE_OWNER_URL',
    about: 'Address with the login that migrates. Empty: the same as POSTERN_DATABASE_URL.',
    default: '',
    secret: true,
    parse: (value: string) => (value === '' ? undefined : postgresUrl(value)),
  },
  databasePoolSize: {
    name: 'POSTERN_DATABASE_POOL_SIZE',
    about: 'Connections per process and database role.',
    default: '10',
    parse: integer(1, 500),
  },
  publicUrl: {
    name: 'POSTERN_PUBLIC_URL',
    about:
      'The address that people and programs use to reach Postern, for example https://mail.example.com. ' +
      'It is the issuer of access tokens and decides where cookies are valid.',
    parse: bareUrl,
  },
  host: {
    name: 'POSTERN_HTTP_HOST',
    about: 'The address to listen on.',
    default: '127.0.0.1',
    parse: text,
  },
  port: {
    name: 'POSTERN_HTTP_PORT',
    about: 'The port to listen on.',
    default: '8080',
    parse: integer(0, 65535),
  },
  trustedProxies: {
    name: 'POSTERN_TRUSTED_PROXIES',
    about:
      'Addresses or networks (CIDR), separated by commas, of the reverse proxies whose X-Forwarded-For is believed. ' +
      'Empty: none is.',
    default: '',
    parse: networks,
  },
  authSecrets: {
    name: 'POSTERN_AUTH_SECRETS',
    about:
      'Secrets that protect sessions, token-signing keys and TOTP seeds, as version:secret, separated by commas, ' +
      'newest first, each at least 32 characters: 1:$(openssl rand -hex 32). Keep the old ones behind a new one.',
    secret: true,
    parse: versionedSecrets,
  },
  masterKeys: {
    name: 'POSTERN_MASTER_KEYS',
    about:
      'Keys that wrap the keys of the projects, under which their secrets are encrypted, and from which the key that ' +
      'signs audit checkpoints is derived: name:64 hexadecimal digits, separated by commas; the first one wraps: ' +
      '1:$(openssl rand -hex 32). Keep an old one behind a new one until `postern secrets rewrap` has run.',
    secret: true,
    parse: masterKeys,
  },
  auditCheckpointFile: {
    name: 'POSTERN_AUDIT_CHECKPOINT_FILE',
    about:
      'A file to which every audit checkpoint is also appended, best on storage of another machine: up to the last ' +
      'one in it, a cut-off end of an audit chain can be proved. Empty: none.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  requestsPerAddress: {
    name: 'POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS',
    about: 'Requests that one address (IPv6: one /64 network) may make per minute and process.',
    default: '1200',
    parse: integer(1, 1_000_000_000),
  },
  requestsPerUser: {
    name: 'POSTERN_REQUESTS_PER_MINUTE_PER_USER',
    about: 'Requests that one user may make per minute and process: as an administrator, and as a customer.',
    default: '600',
    parse: integer(1, 1_000_000_000),
  },
  requestsPerKey: {
    name: 'POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY',
    about:
      'Requests that one API key may make per minute and process; mails that it submits by SMTP count as such.',
    default: '6000',
    parse: integer(1, 1_000_000_000),
  },
  customerPlanId: {
    name: 'POSTERN_CUSTOMER_PLAN_ID',
    about:
      'The number of the plan that projects have which customers make themselves. Empty: only administrators make projects.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : integer(1, Number.MAX_SAFE_INTEGER)(value)),
  },
  oidcIssuers: {
    name: 'POSTERN_OIDC_ISSUERS',
    about:
      'Outside issuers whose tokens are accepted, as a JSON list of ' +
      '{"issuer", "audience", "jwks_url", "token_type"?, "requires_nbf"?}.',
    default: '[]',
    parse: oidcIssuers,
  },
  sesRegion: {
    name: 'POSTERN_SES_REGION',
    about:
      'The region of Amazon SES, for example eu-west-1. Empty: SES is not offered. The credentials are found as every ' +
      'AWS program finds them (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, the role of the container or ' +
      'the instance) and need ses:CreateEmailIdentity, ses:TagResource, ses:GetEmailIdentity, ses:DeleteEmailIdentity ' +
      'and, to send, ses:SendEmail and ses:SendRawEmail.',
    default: '',
    parse: sesRegion,
  },
  sesAccountId: {
    name: 'POSTERN_SES_ACCOUNT_ID',
    about: 'The number of the AWS account that the credentials belong to; goes with POSTERN_SES_REGION.',
    default: '',
    parse: awsAccountId,
  },
  sesEndpoint: {
    name: 'POSTERN_SES_ENDPOINT',
    about: 'Where SES is reached, for a private endpoint. Empty: at the public one of the region.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : bareUrl(value).origin),
  },
  sesConfigurationSet: {
    name: 'POSTERN_SES_CONFIGURATION_SET',
    about:
      'The configuration set of SES that mail is sent with, and whose events go to one of POSTERN_SES_TOPIC_ARNS. ' +
      'Empty: domains are registered with SES, and no mail is sent by it.',
    default: '',
    parse: configurationSet,
  },
  sesTopicArns: {
    name: 'POSTERN_SES_TOPIC_ARNS',
    about:
      'The SNS topics, separated by commas, whose messages are believed at POSTERN_PUBLIC_URL/v1/intake/sns: ' +
      'arn:aws:sns:eu-west-1:111122223333:postern. Empty: none is.',
    default: '',
    parse: topicArns,
  },
  snsEndpoint: {
    name: 'POSTERN_SNS_ENDPOINT',
    about:
      'Where SNS is reached, for its certificates and to confirm subscriptions, by way of a private endpoint. ' +
      "Empty: at the public one of the topic's region.",
    default: '',
    parse: (value: string) => (value === '' ? undefined : bareUrl(value).origin),
  },
  dnsServers: {
    name: 'POSTERN_DNS_SERVERS',
    about:
      "Addresses, separated by commas, of the resolvers that are asked for customers' DNS records, each with a port " +
      "if need be: 192.0.2.53, [2001:db8::53]:5353. Empty: the system's.",
    default: '',
    parse: dnsServers,
  },
  mxHost: {
    name: 'POSTERN_MX_HOST',
    about: "The host that customers' MX records point to. Empty: the host of POSTERN_PUBLIC_URL.",
    default: '',
    parse: hostName,
  },
  returnPathHost: {
    name: 'POSTERN_RETURN_PATH_HOST',
    about:
      "The host that the CNAME records of customers' return paths point to. Empty: the host of POSTERN_PUBLIC_URL.",
    default: '',
    parse: hostName,
  },
  dispatchConcurrency: {
    name: 'POSTERN_DISPATCH_CONCURRENCY',
    about: 'Mails that a worker hands over at once.',
    default: '50',
    parse: integer(1, 1000),
  },
  composeThreads: {
    name: 'POSTERN_COMPOSE_THREADS',
    about: 'Threads of a worker that compose and sign mail. 0: its main thread does it.',
    default: '1',
    parse: integer(0, 64),
  },
  retentionDays: {
    name: 'POSTERN_RETENTION_DAYS',
    about:
      'How long the contents of messages and their events are kept. What is still to be sent stays longer; who a message ' +
      'went to is kept for 45 days more, because reports come late.',
    default: '30',
    parse: integer(1, 3660),
  },
  intakeHost: {
    name: 'POSTERN_INTAKE_HOST',
    about: 'The address at which `postern intake` listens for mail.',
    default: '127.0.0.1',
    parse: text,
  },
  bouncePort: {
    name: 'POSTERN_BOUNCE_PORT',
    about:
      'The port at which bounces, delivery reports and complaints are taken in: the MX of POSTERN_RETURN_PATH_HOST, ' +
      'and a transport of the MTAs, lead there.',
    default: '2525',
    parse: integer(0, 65535),
  },
  intakeTlsCertificate: {
    name: 'POSTERN_INTAKE_TLS_CERTIFICATE',
    about:
      'A file with the certificate chain (PEM) with which `postern intake` offers TLS; taken anew within a minute when it ' +
      'was renewed. Empty: there is none, and no submission.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  intakeTlsKey: {
    name: 'POSTERN_INTAKE_TLS_KEY',
    about: 'A file with the private key (PEM) of POSTERN_INTAKE_TLS_CERTIFICATE.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  submissionPort: {
    name: 'POSTERN_SUBMISSION_PORT',
    about:
      'The port at which `postern intake` takes mail from customers by SMTP with STARTTLS (RFC 6409), usually 587. ' +
      'Empty: none.',
    default: '',
    parse: optionalPort,
  },
  submissionsPort: {
    name: 'POSTERN_SUBMISSIONS_PORT',
    about: 'The same with TLS from the first octet (RFC 8314), usually 465. Empty: none.',
    default: '',
    parse: optionalPort,
  },
  suppressOn: {
    name: 'POSTERN_SUPPRESS_ON',
    about:
      'Enhanced status codes (RFC 3463), separated by commas, of the bounces after which a project sends no more to the ' +
      'address. `none`: after no bounce. A complaint always has that effect.',
    default: '5.1.1, 5.1.2, 5.1.6, 5.1.10, 5.2.1',
    parse: bounceCodes,
  },
  systemMailFrom: {
    name: 'POSTERN_SYSTEM_MAIL_FROM',
    about:
      'The address that invitations are mailed from, by way of POSTERN_MTA_HOSTS. Empty: they are not mailed, and the log says so.',
    default: '',
    parse: mailbox,
  },
  mtaHosts: {
    name: 'POSTERN_MTA_HOSTS',
    about:
      'The MTAs that mail of the provider `service` is handed to, separated by commas: smtp://host:25, ' +
      'smtp://user:password@host:587 or smtps://host:465. STARTTLS is used where it is offered; with a password it is ' +
      'demanded, and the certificate must hold, as with smtps. Empty: such mail waits.',
    default: '',
    secret: true,
    parse: mtaHosts,
  },
  logLevel: {
    name: 'POSTERN_LOG_LEVEL',
    about: 'How much is logged.',
    default: 'info',
    parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  stopGraceSeconds: {
    name: 'POSTERN_STOP_GRACE_SECONDS',
    about: 'How long a process that was told to stop may go on with the requests it has.',
    default: '25',
    parse: integer(1, 3600),
  },
}

type Settings = SettingsOf<typeof settings>
type Derived = 'databaseOwnerUrl' | 'mxHost' | 'returnPathHost'

/** The settings, with those that follow another one where they are empty filled in. */
export type Config = Omit<Settings, Derived> & Record<Derived, string>

export function loadConfig(
  env: Environment,
  readFile: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): Config {
  const config = readSettings(settings, env, readFile)
  const problems = contradictions(config)
  if (problems.length > 0) {
    throw new UsageError(
      `The configuration is not usable:\n${problems.map((line) => `  - ${line}`).join('\n')}`,
    )
  }
  return {
    ...config,
    databaseOwnerUrl: config.databaseOwnerUrl ?? config.databaseUrl,
    mxHost: config.mxHost ?? config.publicUrl.hostname,
    returnPathHost: config.returnPathHost ?? config.publicUrl.hostname,
  }
}

/** What is wrong with settings that are well as they stand alone. */
function contradictions({
  oidcIssuers,
  publicUrl,
  sesRegion,
  sesAccountId,
  sesEndpoint,
  sesConfigurationSet,
  sesTopicArns,
  intakeTlsCertificate,
  intakeTlsKey,
  submissionPort,
  submissionsPort,
}: Settings): string[] {
  const problems: string[] = []
  if (oidcIssuers.some(({ issuer }) => issuer === publicUrl.origin)) {
    problems.push('POSTERN_OIDC_ISSUERS names our own POSTERN_PUBLIC_URL')
  }
  if ((sesRegion === undefined) !== (sesAccountId === undefined)) {
    problems.push('POSTERN_SES_REGION and POSTERN_SES_ACCOUNT_ID go together; set both or none')
  }
  if (sesEndpoint !== undefined && sesRegion === undefined) {
    problems.push('POSTERN_SES_ENDPOINT is of no use without POSTERN_SES_REGION')
  }
  if (sesConfigurationSet !== undefined && sesRegion === undefined) {
    problems.push('POSTERN_SES_CONFIGURATION_SET is of no use without POSTERN_SES_REGION')
  }
  if (sesConfigurationSet !== undefined && sesTopicArns.length === 0) {
    problems.push('POSTERN_SES_CONFIGURATION_SET needs POSTERN_SES_TOPIC_ARNS, to hear what became of mail')
  }
  if ((intakeTlsCertificate === undefined) !== (intakeTlsKey === undefined)) {
    problems.push('POSTERN_INTAKE_TLS_CERTIFICATE and POSTERN_INTAKE_TLS_KEY go together; set both or none')
  }
  if ((submissionPort ?? submissionsPort) !== undefined && intakeTlsCertificate === undefined) {
    problems.push('POSTERN_SUBMISSION_PORT and POSTERN_SUBMISSIONS_PORT need POSTERN_INTAKE_TLS_CERTIFICATE')
  }
  return problems
}

function optionalPort(value: string): number | undefined {
  return value === '' ? undefined : integer(0, 65535)(value)
}

function parseUrl(value: string): URL {
  const url = URL.parse(value)
  // The value may hold a password, so it is not repeated.
  if (!url) throw new Wrong('must be a full address such as https://mail.example.com')
  return url
}

function postgresUrl(value: string): string {
  const url = URL.parse(value)
  if (!url || !['postgres:', 'postgresql:'].includes(url.protocol) || !isDecodable(url.username)) {
    throw new Wrong('must look like postgres://user:password@host/database')
  }
  if (url.searchParams.has('options')) {
    throw new Wrong('must not set "options": Postern uses them to choose the role of a connection')
  }
  return value
}

const isDecodable = (part: string): boolean => part !== '' && /^(?:[^%]|%[0-9a-f]{2})+$/i.test(part)

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

function bareUrl(value: string): URL {
  const url = httpUrl(value)
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '') {
    throw new Wrong('must be scheme and host only, such as https://mail.example.com')
  }
  return url
}

/** Plain HTTP carries tokens and keys in the clear: only inside the machine. */
function httpUrl(value: string): URL {
  const url = parseUrl(value)
  const isPlainLoopback = url.protocol === 'http:' && loopbackHosts.has(url.hostname)
  if (url.protocol !== 'https:' && !isPlainLoopback) {
    throw new Wrong('must begin with https:// (http:// is for localhost alone)')
  }
  return url
}

function networks(value: string): string[] {
  const entries = list(value)
  for (const entry of entries) {
    const [address = '', prefix, ...more] = entry.split('/')
    const family = isIP(address)
    const bits = family === 6 ? 128 : 32
    if (
      family === 0 ||
      more.length > 0 ||
      (prefix !== undefined && !(/^\d+$/.test(prefix) && Number(prefix) <= bits))
    ) {
      throw new Wrong(`must list addresses or networks such as 10.0.0.0/8; "${entry}" is neither`)
    }
  }
  return entries
}

function sesRegion(value: string): string | undefined {
  if (value !== '' && !/^[a-z]{2}(-[a-z]+)+-\d$/.test(value)) {
    throw new Wrong(`must be a region such as eu-west-1, not "${value}"`)
  }
  return value || undefined
}

function awsAccountId(value: string): string | undefined {
  if (value !== '' && !/^\d{12}$/.test(value)) throw new Wrong(`must be twelve digits, not "${value}"`)
  return value || undefined
}

function configurationSet(value: string): string | undefined {
  if (value !== '' && !/^[\w-]{1,64}$/.test(value)) {
    throw new Wrong(`must be the name of a configuration set, not "${value}"`)
  }
  return value || undefined
}

function topicArns(value: string): string[] {
  const arns = list(value)
  for (const arn of arns) {
    if (regionOfTopic(arn) === undefined) {
      throw new Wrong(`must list topics such as arn:aws:sns:eu-west-1:111122223333:postern; "${arn}" is none`)
    }
  }
  return arns
}

function dnsServers(value: string): string[] {
  const servers = list(value)
  for (const server of servers) {
    const [, ipv4, ipv6, port] = /^(?:([\d.]+)|\[(.+)\]):(\d{1,5})$/.exec(server) ?? []
    const isWithPort =
      isIP(ipv4 ?? ipv6 ?? '') === (ipv4 ? 4 : 6) && Number(port) > 0 && Number(port) < 65_536
    if (isIP(server) === 0 && !isWithPort) {
      throw new Wrong(`must list addresses such as 192.0.2.53 or [2001:db8::53]:5353; "${server}" is none`)
    }
  }
  return servers
}

/** The values may hold passwords, so none is repeated. */
function mtaHosts(value: string): URL[] {
  return list(value).map((entry) => {
    const url = URL.parse(entry)
    const isBare = url && /^\/?$/.test(url.pathname) && url.search === '' && url.hash === ''
    if (!url || !isBare || !/^smtps?:$/.test(url.protocol) || url.hostname === '' || url.port === '0') {
      throw new Wrong('must list addresses such as smtp://mta.example.com:25; one of them is none')
    }
    const isLogin = isDecodable(url.username) && isDecodable(url.password)
    if ((url.username !== '' || url.password !== '') && !isLogin) {
      throw new Wrong('must have a user and a password, percent-encoded, or neither, in each address')
    }
    return url
  })
}

function mailbox(value: string): string | undefined {
  if (value !== '' && 'fault' in readAddress(value)) {
    throw new Wrong(`must be an address such as postern@example.com, not "${value}"`)
  }
  return value || undefined
}

/** As it stands in a DNS record: lower-case, without the last dot. */
function hostName(value: string): string | undefined {
  const name = value.toLowerCase().replace(/\.$/, '')
  const label = '(?!-)[a-z0-9-]{1,63}(?<!-)'
  const isName = new RegExp(`^${label}(\\.${label})+$`).test(name) && name.length <= 253 && isIP(name) === 0
  if (value !== '' && !isName) throw new Wrong(`must be a host name such as mx.example.com, not "${value}"`)
  return name || undefined
}

function bounceCodes(value: string): ReadonlySet<string> {
  if (value === 'none') return new Set()
  const codes = list(value)
  for (const code of codes) {
    if (!/^5\.\d{1,3}\.\d{1,3}$/.test(code)) {
      throw new Wrong(`must list codes such as 5.1.1, or be "none"; "${code}" is no code of a bounce`)
    }
  }
  return new Set(codes)
}

function versionedSecrets(value: string): { version: number; value: string }[] {
  const secrets = list(value).map((entry) => {
    const [, version, secret] = /^(\d{1,9}):(.{32,})$/.exec(entry) ?? []
    if (version === undefined || secret === undefined) {
      throw new Wrong('must be version:secret pairs with secrets of at least 32 characters, such as 1:8c41…')
    }
    return { version: Number(version), value: secret }
  })
  if (secrets.length === 0) throw new Wrong('must hold at least one version:secret pair')
  if (new Set(secrets.map(({ version }) => version)).size < secrets.length) {
    throw new Wrong('names the same version twice')
  }
  return secrets
}

function masterKeys(value: string): [MasterKey, ...MasterKey[]] {
  const [first, ...others] = list(value).map((entry): MasterKey => {
    const [, id, hex] = /^([\w.-]{1,32}):([0-9a-f]{64})$/i.exec(entry) ?? []
    if (id === undefined || hex === undefined) {
      throw new Wrong('must be name:key pairs with keys of 64 hexadecimal digits, such as 1:8c41…')
    }
    return { id, key: Buffer.from(hex, 'hex') }
  })
  if (first === undefined) throw new Wrong('must hold at least one name:key pair')
  const keys: [MasterKey, ...MasterKey[]] = [first, ...others]
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new Wrong('names the same key twice')
  return keys
}

const OidcIssuers = Type.Array(
  Type.Object(
    {
      issuer: Type.String({ minLength: 1 }),
      audience: Type.String({ minLength: 1 }),
      jwks_url: Type.String({ minLength: 1 }),
      token_type: Type.Optional(Type.String({ minLength: 1 })),
      requires_nbf: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
)

export type OidcIssuer = Static<typeof OidcIssuers>[number]

function oidcIssuers(value: string): OidcIssuer[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(value)
  } catch {
    throw new Wrong('must be a JSON list')
  }
  if (!Value.Check(OidcIssuers, parsed)) {
    const [first] = Value.Errors(OidcIssuers, parsed)
    throw new Wrong(`is not as expected at "${first?.instancePath}": ${first?.message}`)
  }
  for (const { jwks_url } of parsed) httpUrl(jwks_url)
  if (new Set(parsed.map(({ issuer }) => issuer)).size < parsed.length) {
    throw new Wrong('names the same issuer twice')
  }
  return parsed
}
