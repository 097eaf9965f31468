import { type CapName, capTable } from '../core/control/caps/caps.ts'
import { integer, oneOf, type Setting, text } from '../platform/settings.ts'
import {
  awsAccountId,
  bareUrl,
  bounceCodes,
  cells,
  configurationSet,
  dnsServers,
  hostName,
  mailbox,
  masterKeys,
  mtaHosts,
  networks,
  oidcIssuers,
  optionalPort,
  ports,
  postgresUrl,
  publicKeys,
  reporters,
  sesRegion,
  share,
  signerKey,
  topicArns,
  versionedSecrets,
} from './values.ts'

/** As large as any operator may want, and small enough to be counted. */
const highestCap = 1_000_000

const capSettings = Object.fromEntries(
  Object.entries(capTable).map(([name, { setting, default: value, about }]) => [
    name,
    { name: setting, about: `Cap: ${about}`, default: String(value), parse: integer(1, highestCap) },
  ]),
) as Record<CapName, Setting<number>>

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
  cells: {
    name: 'POSTERN_CELLS',
    about:
      'Databases of their own for mail, as a JSON list of {"name", "shards", "url"?, "owner_url"?, "source_url"?}; ' +
      'see docs/operations/scale.md. Empty: mail is in the database of POSTERN_DATABASE_URL, as it is for nearly everybody.',
    default: '[]',
    secret: true,
    parse: cells,
  },
  cell: {
    name: 'POSTERN_CELL',
    about:
      'The name of the cell of POSTERN_CELLS at which this process is at home: its worker moves the mail of that cell, ' +
      'and API keys and routes are looked up there. Empty: at control; its worker does what belongs to no cell.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  controlCopyMaxAgeSeconds: {
    name: 'POSTERN_CONTROL_COPY_MAX_AGE_SECONDS',
    about:
      'How old the copy of control in a cell of POSTERN_CELLS may be. While it is older, new mail of that cell is refused with ' +
      '503 and its queue waits; see docs/operations/scale.md. The clocks of the servers must agree.',
    default: '300',
    parse: integer(10, 86_400),
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
      'Keys that wrap the keys of the projects, under which their secrets are encrypted, and from which, without a signer, the ' +
      'key that signs audit checkpoints is derived: name:64 hexadecimal digits, separated by commas; the first one wraps: ' +
      '1:$(openssl rand -hex 32). Keep an old one behind a new one until `postern secrets rewrap` has run.',
    secret: true,
    parse: masterKeys,
  },
  auditCheckpointFile: {
    name: 'POSTERN_AUDIT_CHECKPOINT_FILE',
    about:
      'A file to which every audit checkpoint is also appended, best on storage of another machine: up to the last ' +
      'one in it, a cut-off end of an audit chain can be proved. With a signer, the signer writes the file, and every other ' +
      'process only reads it. Empty: none.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  auditSignerSocket: {
    name: 'POSTERN_AUDIT_SIGNER_SOCKET',
    about:
      'The Unix socket at which `postern signer` listens and the worker asks it to sign audit checkpoints; see ' +
      'docs/operations/audit.md. All processes but the signer need POSTERN_AUDIT_PUBLIC_KEYS as well. Empty, with ' +
      'POSTERN_AUDIT_PUBLIC_KEYS: this worker makes no checkpoints, and the worker beside the signer does. Empty, without them: ' +
      'a worker signs checkpoints with a key that is derived from the first master key.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  auditPublicKeys: {
    name: 'POSTERN_AUDIT_PUBLIC_KEYS',
    about:
      'The public keys of `postern signer`, as name:64 hexadecimal digits, separated by commas: the current one first, then ' +
      'earlier ones. If set, no other signature of a checkpoint is valid. Empty: no signer is used.',
    default: '',
    // No secret; but it may come from a file.
    secret: true,
    parse: publicKeys,
  },
  signerKey: {
    name: 'POSTERN_SIGNER_KEY',
    about:
      'For `postern signer` alone; keep it from every other process. The key that signs audit checkpoints, as name:64 ' +
      'hexadecimal digits, under a name that no master key has: signer-1:$(openssl rand -hex 32).',
    default: '',
    secret: true,
    parse: signerKey,
  },
  signerDatabaseUrl: {
    name: 'POSTERN_SIGNER_DATABASE_URL',
    about:
      'For `postern signer` alone: address of the database with a login that is a member of postern_readonly and of no ' +
      'other role.',
    default: '',
    secret: true,
    parse: (value: string) => (value === '' ? undefined : postgresUrl(value)),
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
  testsPerEndpoint: {
    name: 'POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT',
    about: 'Tests of one endpoint (endpoints.test) that may be asked for per minute and process.',
    default: '10',
    parse: integer(1, 1_000_000_000),
  },
  replaysPerEndpoint: {
    name: 'POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT',
    about: 'Single events that may be replayed to one endpoint (endpoints.replay) per minute and process.',
    default: '60',
    parse: integer(1, 1_000_000_000),
  },
  customerPlanId: {
    name: 'POSTERN_CUSTOMER_PLAN_ID',
    about:
      'The number of the plan that projects have which customers make themselves. Empty: only administrators make projects.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : integer(1, Number.MAX_SAFE_INTEGER)(value)),
  },
  ...capSettings,
  max_bytes_per_day: {
    name: 'POSTERN_MAX_BYTES_PER_DAY',
    about:
      'Bytes that a project may store in a UTC day by sending mail: contents, and 1024 for each recipient. More is refused ' +
      'with `quota_exceeded`.',
    default: String(10 * 1024 ** 3),
    parse: integer(1, Number.MAX_SAFE_INTEGER),
  },
  max_inbound_bytes_per_day: {
    name: 'POSTERN_MAX_INBOUND_BYTES_PER_DAY',
    about:
      'Bytes of mail that may come in for a project in a UTC day: the mail, what endpoints are told of it, and 1024 for each ' +
      'recipient. More is refused for now, and its sender tries again.',
    default: String(1024 ** 3),
    parse: integer(1, Number.MAX_SAFE_INTEGER),
  },
  max_forwards_per_day: {
    name: 'POSTERN_MAX_FORWARDS_PER_DAY',
    about:
      'Mails that the routes of a project may forward in a UTC day. They count as mails of the plan, too. Further mail is put ' +
      'off (452), and its sender tries again.',
    default: '10000',
    parse: integer(0, Number.MAX_SAFE_INTEGER),
  },
  forwardConfirmationsPerProject: {
    name: 'POSTERN_FORWARD_CONFIRMATIONS_PER_DAY_PER_PROJECT',
    about:
      'Confirmation mails to the targets of a project’s forwards in a UTC day. Further ones wait for the next day.',
    default: '20',
    parse: integer(0, 1_000_000),
  },
  forwardConfirmationsPerAddress: {
    name: 'POSTERN_FORWARD_CONFIRMATIONS_PER_DAY_PER_ADDRESS',
    about:
      'Confirmation mails for forwards to one address in a UTC day, over all projects. Further ones wait for the next day.',
    default: '3',
    parse: integer(0, 1_000_000),
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
  webhookPorts: {
    name: 'POSTERN_WEBHOOK_PORTS',
    about: 'The ports, separated by commas, that the addresses of endpoints may have.',
    default: '443',
    parse: ports,
  },
  privateNetworks: {
    name: 'POSTERN_PRIVATE_NETWORKS',
    about:
      'Addresses or networks (CIDR), separated by commas, that endpoints may be in although they are not part of the ' +
      'public internet: 10.20.0.0/16. Every customer can call what is there. Empty: none.',
    default: '',
    parse: networks,
  },
  webhookCaFile: {
    name: 'POSTERN_WEBHOOK_CA_FILE',
    about:
      'A file with certificate authorities (PEM) that are trusted for endpoints besides the usual ones, for receivers ' +
      'inside. Empty: none.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  retentionDays: {
    name: 'POSTERN_RETENTION_DAYS',
    about:
      'How many days events are kept, what was tried at endpoints, and mail that came in. Who a message went to is kept for ' +
      '45 days more, because reports come late.',
    default: '30',
    parse: integer(1, 3660),
  },
  activityRetentionDays: {
    name: 'POSTERN_ACTIVITY_RETENTION_DAYS',
    about:
      "How many days the activity of projects and of users' accounts is kept. At most the newest 50,000 rows of a project and " +
      '10,000 of a user are kept. The audit of administrators is not deleted.',
    default: '365',
    parse: integer(1, 3660),
  },
  bodyRetentionHours: {
    name: 'POSTERN_BODY_RETENTION_HOURS',
    about:
      'How many hours the content of a message is kept after the UTC day on which it was accepted. Content that is still to ' +
      'be sent stays until it is handed over.',
    default: '24',
    parse: integer(24, 87840),
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
      'and the reports of your MTAs, lead there.',
    default: '2525',
    parse: integer(0, 65535),
  },
  inboundPort: {
    name: 'POSTERN_INBOUND_PORT',
    about:
      "The port at which `postern intake` takes in mail for customers' domains: POSTERN_MX_HOST leads there, from port 25. " +
      'Empty: none.',
    default: '',
    parse: optionalPort,
  },
  feedbackReporters: {
    name: 'POSTERN_FEEDBACK_REPORTERS',
    about:
      'Domains, addresses or networks (CIDR), separated by commas, that may send complaint reports to fbl@ and abuse@ of ' +
      'POSTERN_RETURN_PATH_HOST. A domain stands for valid DKIM signatures of it and its subdomains. Reports whose valid ' +
      'DKIM signature is aligned with From are always taken; all others are refused.',
    default: '',
    parse: reporters,
  },
  relayNetworks: {
    name: 'POSTERN_RELAY_NETWORKS',
    about:
      'Addresses or networks (CIDR), separated by commas, of your own mail servers that pass mail and reports to ' +
      '`postern intake`. No budget of processor time applies to what they bring.',
    default: '127.0.0.0/8, ::1, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7',
    parse: networks,
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
      'The address from which Postern mails invitations, links to set a new password, links to confirm forwards, and notices to ' +
      'owners of projects, by way of POSTERN_MTA_HOSTS. Empty: nothing of this is mailed, the log says so, and no forward ' +
      'becomes active.',
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
  metricsHost: {
    name: 'POSTERN_METRICS_HOST',
    about:
      'The address at which a process shows its metrics and its health, apart from everything that is public.',
    default: '127.0.0.1',
    parse: text,
  },
  metricsPort: {
    name: 'POSTERN_METRICS_PORT',
    about:
      'The port for that, another for each process on a machine: GET /metrics (Prometheus), /healthz and /readyz. ' +
      'Empty: none.',
    default: '',
    parse: optionalPort,
  },
  otlpEndpoint: {
    name: 'POSTERN_OTLP_ENDPOINT',
    about:
      'A collector of OpenTelemetry that takes traces by OTLP over HTTP: http://127.0.0.1:4318. Empty: nothing is traced.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : bareUrl(value).origin),
  },
  traceShare: {
    name: 'POSTERN_TRACE_SHARE',
    about:
      'Of requests and submissions that come without a trace of their own, the share that is traced, from 0 to 1.',
    default: '1',
    parse: share,
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
