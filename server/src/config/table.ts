import { type CapName, capTable } from '../core/control/caps/caps.ts'
import { integer, oneOf, type Setting, text } from '../platform/settings.ts'
import { accentColor, installationName } from './branding.ts'
import { oidcIssuers, signInIssuers } from './issuers.ts'
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
  optionalPort,
  pageUrl,
  ports,
  postgresUrl,
  publicKeys,
  reporters,
  sesRegion,
  share,
  signerKey,
  tokens,
  topicArns,
  versionedSecrets,
} from './values.ts'

/** The highest value of a cap: larger than any operator needs, but small enough for the rows to be counted. */
const highestCap = 1_000_000

const capSettings = Object.fromEntries(
  Object.entries(capTable).map(([name, { setting, default: value, about }]) => [
    name,
    { name: setting, about: `Cap: ${about}`, default: String(value), parse: integer(1, highestCap) },
  ]),
) as Record<CapName, Setting<number>>

/** All of Postern's settings. Every `postern` command reads the same environment. */
export const settings = {
  databaseUrl: {
    name: 'POSTERN_DATABASE_URL',
    about:
      "URL of the PostgreSQL database, with the application's login: postgres://user:password@host/database",
    secret: true,
    parse: postgresUrl,
  },
  databaseOwnerUrl: {
    name: 'POSTERN_DATABASE_OWNER_URL',
    about:
      'URL of the database with the login that runs migrations. Empty: the same as POSTERN_DATABASE_URL.',
    default: '',
    secret: true,
    parse: (value: string) => (value === '' ? undefined : postgresUrl(value)),
  },
  databasePoolSize: {
    name: 'POSTERN_DATABASE_POOL_SIZE',
    about: 'Maximum number of database connections per role in each process.',
    default: '10',
    parse: integer(1, 500),
  },
  cells: {
    name: 'POSTERN_CELLS',
    about:
      'Separate databases for mail, as a JSON list of {"name", "shards", "url"?, "owner_url"?, "source_url"?}; see ' +
      'docs/operations/scale.md. Empty: mail is stored in the POSTERN_DATABASE_URL database, which suits nearly every ' +
      'installation.',
    default: '[]',
    secret: true,
    parse: cells,
  },
  cell: {
    name: 'POSTERN_CELL',
    about:
      "The cell in POSTERN_CELLS that this process belongs to: its worker sends that cell's mail, and API keys and " +
      'routes are looked up there. Empty: the process belongs to control, and its worker runs the jobs that belong to no cell.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  controlReplicaMaxAgeSeconds: {
    name: 'POSTERN_CONTROL_REPLICA_MAX_AGE_SECONDS',
    about:
      "Maximum age of a cell's control replica (POSTERN_CELLS). While the replica is older, new mail for that cell is " +
      "rejected with 503 and its queue is paused; see docs/operations/scale.md. The servers' clocks must be synchronized.",
    default: '300',
    parse: integer(10, 86_400),
  },
  publicUrl: {
    name: 'POSTERN_PUBLIC_URL',
    about:
      'The public URL of this installation, for example https://mail.example.com. It is the issuer of access tokens and the ' +
      'scope of cookies.',
    parse: bareUrl,
  },
  installationName: {
    name: 'POSTERN_NAME',
    about: "The name of this installation, as the console, the customers' web app and system mail show it.",
    default: 'Postern',
    parse: installationName,
  },
  logoFile: {
    name: 'POSTERN_LOGO_FILE',
    about:
      "A logo for the console and the customers' web app: an SVG or PNG file of at most 64 KiB. An SVG must not contain " +
      'scripts. Empty: the logo of Postern.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  color: {
    name: 'POSTERN_COLOR',
    about:
      "The accent colour of the console and the customers' web app, as #rrggbb. White text must have a contrast of at least " +
      '4.5:1 on it; lighter and darker shades are derived. Empty: blue.',
    default: '',
    parse: accentColor,
  },
  supportEmail: {
    name: 'POSTERN_SUPPORT_EMAIL',
    about: 'The address at which customers get help. Empty: none.',
    default: '',
    parse: mailbox,
  },
  supportUrl: {
    name: 'POSTERN_SUPPORT_URL',
    about: 'A page with help for customers. Empty: none.',
    default: '',
    parse: pageUrl,
  },
  termsUrl: {
    name: 'POSTERN_TERMS_URL',
    about: 'The page with the terms of service. Empty: none.',
    default: '',
    parse: pageUrl,
  },
  privacyUrl: {
    name: 'POSTERN_PRIVACY_URL',
    about: 'The page with the privacy policy. Empty: none.',
    default: '',
    parse: pageUrl,
  },
  host: {
    name: 'POSTERN_HTTP_HOST',
    about: 'The address that the API listens on.',
    default: '127.0.0.1',
    parse: text,
  },
  port: {
    name: 'POSTERN_HTTP_PORT',
    about: 'The port that the API listens on.',
    default: '8080',
    parse: integer(0, 65535),
  },
  trustedProxies: {
    name: 'POSTERN_TRUSTED_PROXIES',
    about:
      'Addresses or networks (CIDR), separated by commas, of the reverse proxies whose X-Forwarded-For is trusted. ' +
      'Empty: none.',
    default: '',
    parse: networks,
  },
  authSecrets: {
    name: 'POSTERN_AUTH_SECRETS',
    about:
      'Secrets that protect sessions, token-signing keys and TOTP seeds, as version:secret, separated by commas, newest ' +
      'first, each at least 32 characters: 1:$(openssl rand -hex 32). Put a new secret first and keep the old ones ' +
      'after it.',
    secret: true,
    parse: versionedSecrets,
  },
  masterKeys: {
    name: 'POSTERN_MASTER_KEYS',
    about:
      "Keys that wrap the project keys, which encrypt the projects' secrets: name:64 hexadecimal digits, separated by " +
      'commas; the first one wraps new keys: 1:$(openssl rand -hex 32). Without a signer, the key that signs audit ' +
      'checkpoints is derived from the first one. Keep an old key after a new one until `postern secrets rewrap` has run.',
    secret: true,
    parse: masterKeys,
  },
  auditCheckpointFile: {
    name: 'POSTERN_AUDIT_CHECKPOINT_FILE',
    about:
      'A file to which every audit checkpoint is also appended, preferably on another machine. With it, the removal of ' +
      'entries up to its last checkpoint can be detected. With a signer, the signer writes the file, and every other ' +
      'process only reads it. Empty: none.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  auditSignerSocket: {
    name: 'POSTERN_AUDIT_SIGNER_SOCKET',
    about:
      'The Unix socket of `postern signer`, through which the worker requests signatures for audit checkpoints; see ' +
      'docs/operations/audit.md. All processes except the signer also need POSTERN_AUDIT_PUBLIC_KEYS. Empty, with ' +
      "POSTERN_AUDIT_PUBLIC_KEYS: this worker creates no checkpoints; the worker on the signer's machine does. Empty, " +
      'without them: a worker signs checkpoints with a key derived from the first master key.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  auditPublicKeys: {
    name: 'POSTERN_AUDIT_PUBLIC_KEYS',
    about:
      'The public keys of `postern signer`, as name:64 hexadecimal digits, separated by commas: the current one first, then ' +
      'earlier ones. If set, checkpoints signed with any other key are invalid. Empty: no signer is used.',
    default: '',
    // Not a secret, but it can be read from a file.
    secret: true,
    parse: publicKeys,
  },
  signerKey: {
    name: 'POSTERN_SIGNER_KEY',
    about:
      'For `postern signer` only; no other process may have it. The key that signs audit checkpoints, as name:64 ' +
      'hexadecimal digits, with a name that no master key has: signer-1:$(openssl rand -hex 32).',
    default: '',
    secret: true,
    parse: signerKey,
  },
  signerDatabaseUrl: {
    name: 'POSTERN_SIGNER_DATABASE_URL',
    about:
      'For `postern signer` only: URL of the database with a login that is a member of postern_readonly and of no other role.',
    default: '',
    secret: true,
    parse: (value: string) => (value === '' ? undefined : postgresUrl(value)),
  },
  requestsPerAddress: {
    name: 'POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS',
    about: 'Maximum requests per minute from one address (IPv6: one /64 network) to each process.',
    default: '1200',
    parse: integer(1, 1_000_000_000),
  },
  requestsPerUser: {
    name: 'POSTERN_REQUESTS_PER_MINUTE_PER_USER',
    about:
      'Maximum requests per minute from one user to each process, counted separately for the administrative and the customer API.',
    default: '600',
    parse: integer(1, 1_000_000_000),
  },
  requestsPerKey: {
    name: 'POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY',
    about:
      'Maximum requests per minute with one API key to each process. Each message submitted over SMTP counts as a request.',
    default: '6000',
    parse: integer(1, 1_000_000_000),
  },
  testsPerEndpoint: {
    name: 'POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT',
    about: 'Maximum tests of one endpoint (endpoints.test) per minute in each process.',
    default: '10',
    parse: integer(1, 1_000_000_000),
  },
  replaysPerEndpoint: {
    name: 'POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT',
    about: 'Maximum replays of single events to one endpoint (endpoints.replay) per minute in each process.',
    default: '60',
    parse: integer(1, 1_000_000_000),
  },
  customerPlanId: {
    name: 'POSTERN_CUSTOMER_PLAN_ID',
    about:
      'The id of the plan for projects that customers create. Empty: only administrators can create projects.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : integer(1, Number.MAX_SAFE_INTEGER)(value)),
  },
  customerAllowServiceMta: {
    name: 'POSTERN_CUSTOMER_ALLOW_SERVICE_MTA',
    about:
      "Whether projects that customers create may use the operator's own MTAs (`allow_service_mta`). The default is true: " +
      'otherwise, on an installation without Amazon SES, such a project cannot add a domain until an administrator allows ' +
      "it. The plan's limits and the policies apply in either case.",
    default: 'true',
    parse: (value: string) => oneOf('true', 'false')(value) === 'true',
  },
  customerSignUp: {
    name: 'POSTERN_CUSTOMER_SIGN_UP',
    about:
      "Whether people can sign up for an account in the customers' web app. It needs POSTERN_SYSTEM_MAIL_FROM and " +
      'POSTERN_MTA_HOSTS, because every address is confirmed by a link. Otherwise, people need an invitation to a project.',
    default: 'false',
    parse: (value: string) => oneOf('true', 'false')(value) === 'true',
  },
  signUpsPerDay: {
    name: 'POSTERN_SIGN_UPS_PER_DAY',
    about:
      'Maximum sign-ups per UTC day, confirmed or not. Further sign-ups are rejected with `rate_limited`.',
    default: '500',
    parse: integer(1, 1_000_000),
  },
  signUpsPerNetwork: {
    name: 'POSTERN_SIGN_UPS_PER_DAY_PER_ADDRESS',
    about: 'Maximum sign-ups per UTC day from one address (IPv6: one /64 network).',
    default: '10',
    parse: integer(1, 1_000_000),
  },
  ...capSettings,
  max_bytes_per_day: {
    name: 'POSTERN_MAX_BYTES_PER_DAY',
    about:
      'Maximum bytes that a project may store per UTC day by sending mail: the content, plus 1024 for each recipient. Further ' +
      'mail is rejected with `quota_exceeded`.',
    default: String(10 * 1024 ** 3),
    parse: integer(1, Number.MAX_SAFE_INTEGER),
  },
  max_inbound_bytes_per_day: {
    name: 'POSTERN_MAX_INBOUND_BYTES_PER_DAY',
    about:
      'Maximum bytes of inbound mail per project per UTC day: the message, its webhook payload, and 1024 for each recipient. ' +
      'Further mail is deferred (452), and its sender retries.',
    default: String(1024 ** 3),
    parse: integer(1, Number.MAX_SAFE_INTEGER),
  },
  max_forwards_per_day: {
    name: 'POSTERN_MAX_FORWARDS_PER_DAY',
    about:
      "Maximum messages that a project's routes may forward per UTC day. They also count against the plan. Further mail " +
      'is deferred (452), and its sender retries.',
    default: '10000',
    parse: integer(0, Number.MAX_SAFE_INTEGER),
  },
  forwardConfirmationsPerProject: {
    name: 'POSTERN_FORWARD_CONFIRMATIONS_PER_DAY_PER_PROJECT',
    about:
      "Maximum confirmation messages to a project's forwarding targets per UTC day. Further messages are sent the next day.",
    default: '20',
    parse: integer(0, 1_000_000),
  },
  forwardConfirmationsPerAddress: {
    name: 'POSTERN_FORWARD_CONFIRMATIONS_PER_DAY_PER_ADDRESS',
    about:
      'Maximum confirmation messages for forwards to one address per UTC day, across all projects. Further messages are ' +
      'sent the next day.',
    default: '3',
    parse: integer(0, 1_000_000),
  },
  oidcIssuers: {
    name: 'POSTERN_OIDC_ISSUERS',
    about:
      'External OIDC issuers whose tokens are accepted, as a JSON list of ' +
      '{"issuer", "audience", "jwks_url", "token_type"?, "requires_nbf"?}.',
    default: '[]',
    parse: oidcIssuers,
  },
  signInIssuers: {
    name: 'POSTERN_SIGN_IN_ISSUERS',
    about:
      'OpenID Connect issuers at which people sign in with the browser, as a JSON list of {"id", "label", "issuer", ' +
      '"client_id", "client_secret", "second_factor_acr"?, "second_factor_amr"?, "sign_up"?, "private_networks"?, "ca_file"?}, ' +
      'at most 10; see docs/operations/single-sign-on.md. Empty: none.',
    default: '[]',
    secret: true,
    parse: signInIssuers,
  },
  sesRegion: {
    name: 'POSTERN_SES_REGION',
    about:
      'The region of Amazon SES, for example eu-west-1. Empty: SES is not available. Credentials come from the default ' +
      'AWS provider chain (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the role of the container or ' +
      'instance) and need ses:CreateEmailIdentity, ses:TagResource, ses:GetEmailIdentity, ses:DeleteEmailIdentity and, ' +
      'to send, ses:SendEmail and ses:SendRawEmail.',
    default: '',
    parse: sesRegion,
  },
  sesAccountId: {
    name: 'POSTERN_SES_ACCOUNT_ID',
    about: 'The id of the AWS account that the credentials belong to; required with POSTERN_SES_REGION.',
    default: '',
    parse: awsAccountId,
  },
  sesEndpoint: {
    name: 'POSTERN_SES_ENDPOINT',
    about: "URL of a private SES endpoint. Empty: the region's public endpoint.",
    default: '',
    parse: (value: string) => (value === '' ? undefined : bareUrl(value).origin),
  },
  sesConfigurationSet: {
    name: 'POSTERN_SES_CONFIGURATION_SET',
    about:
      'The SES configuration set to send mail with. Its events must go to one of POSTERN_SES_TOPIC_ARNS. Empty: domains are ' +
      'registered with SES, but no mail is sent through it.',
    default: '',
    parse: configurationSet,
  },
  sesTopicArns: {
    name: 'POSTERN_SES_TOPIC_ARNS',
    about:
      'The SNS topics, separated by commas, whose messages are accepted at POSTERN_PUBLIC_URL/v1/intake/sns: ' +
      'arn:aws:sns:eu-west-1:111122223333:postern. Empty: none.',
    default: '',
    parse: topicArns,
  },
  snsEndpoint: {
    name: 'POSTERN_SNS_ENDPOINT',
    about:
      'URL of a private SNS endpoint, to load certificates and confirm subscriptions. ' +
      "Empty: the public endpoint in the topic's region.",
    default: '',
    parse: (value: string) => (value === '' ? undefined : bareUrl(value).origin),
  },
  kumomtaTokens: {
    name: 'POSTERN_KUMOMTA_TOKENS',
    about:
      'Tokens, separated by commas, each at least 32 characters: $(openssl rand -hex 32). A KumoMTA server that sends ' +
      'one of them (Authorization: Bearer) can post its log records to POSTERN_PUBLIC_URL/v1/intake/kumomta as delivery ' +
      'reports; see docs/operations/kumomta.md. To rotate a token, list the old and the new one. Empty: none.',
    default: '',
    secret: true,
    parse: tokens,
  },
  dnsServers: {
    name: 'POSTERN_DNS_SERVERS',
    about:
      'Addresses, separated by commas, of the DNS resolvers to use, each with an optional port: ' +
      "192.0.2.53, [2001:db8::53]:5353. Empty: the system's resolvers.",
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
    about: 'Number of messages that a worker submits to providers concurrently.',
    default: '50',
    parse: integer(1, 1000),
  },
  composeThreads: {
    name: 'POSTERN_COMPOSE_THREADS',
    about: 'Number of threads per worker that compose and sign mail. 0: the main thread does this.',
    default: '1',
    parse: integer(0, 64),
  },
  webhookPorts: {
    name: 'POSTERN_WEBHOOK_PORTS',
    about: 'The ports, separated by commas, that endpoint URLs may use.',
    default: '443',
    parse: ports,
  },
  privateNetworks: {
    name: 'POSTERN_PRIVATE_NETWORKS',
    about:
      'Private addresses or networks (CIDR), separated by commas, that endpoint URLs may point to: ' +
      '10.20.0.0/16. Every customer can then send requests to hosts at these addresses. Empty: none.',
    default: '',
    parse: networks,
  },
  webhookCaFile: {
    name: 'POSTERN_WEBHOOK_CA_FILE',
    about:
      'A file with certificate authorities (PEM) that are trusted for endpoints in addition to the public ones, for internal ' +
      'receivers. Empty: none.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : value),
  },
  retentionDays: {
    name: 'POSTERN_RETENTION_DAYS',
    about:
      'How many days events, webhook attempts and inbound mail are kept. The recipients of a message are kept 45 days longer, ' +
      'because reports can arrive late.',
    default: '30',
    parse: integer(1, 3660),
  },
  activityRetentionDays: {
    name: 'POSTERN_ACTIVITY_RETENTION_DAYS',
    about:
      'How many days the activity log of projects and users is kept, up to the newest 50,000 rows per project and ' +
      "10,000 per user. The administrators' audit log is never deleted.",
    default: '365',
    parse: integer(1, 3660),
  },
  bodyRetentionHours: {
    name: 'POSTERN_BODY_RETENTION_HOURS',
    about:
      "How many hours a message's content is kept after the UTC day on which the message was accepted. The content of " +
      'unsent mail is kept until it is handed over to the provider.',
    default: '24',
    parse: integer(24, 87840),
  },
  intakeHost: {
    name: 'POSTERN_INTAKE_HOST',
    about: 'The address that `postern intake` listens on.',
    default: '127.0.0.1',
    parse: text,
  },
  bouncePort: {
    name: 'POSTERN_BOUNCE_PORT',
    about:
      'The port for bounces, delivery reports and complaints. The mail for POSTERN_RETURN_PATH_HOST and reports from ' +
      'your MTAs must be delivered to it.',
    default: '2525',
    parse: integer(0, 65535),
  },
  inboundPort: {
    name: 'POSTERN_INBOUND_PORT',
    about:
      "The port for inbound mail to customers' domains. Port 25 of POSTERN_MX_HOST must be forwarded to it. Empty: no " +
      'inbound mail.',
    default: '',
    parse: optionalPort,
  },
  feedbackReporters: {
    name: 'POSTERN_FEEDBACK_REPORTERS',
    about:
      'Domains, addresses or networks (CIDR), separated by commas, that may send complaint reports to fbl@ and abuse@ of ' +
      'POSTERN_RETURN_PATH_HOST. A domain matches valid DKIM signatures by that domain and its subdomains. Reports whose valid ' +
      'DKIM signature is aligned with From are always accepted; all others are rejected.',
    default: '',
    parse: reporters,
  },
  relayNetworks: {
    name: 'POSTERN_RELAY_NETWORKS',
    about:
      'Addresses or networks (CIDR), separated by commas, of your own mail servers that relay mail and reports to ' +
      '`postern intake`. Their mail is exempt from the CPU time limit.',
    default: '127.0.0.0/8, ::1, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7',
    parse: networks,
  },
  intakeTlsCertificate: {
    name: 'POSTERN_INTAKE_TLS_CERTIFICATE',
    about:
      'A file with the certificate chain (PEM) of `postern intake`; a renewed file is loaded within a minute. Empty: no TLS, ' +
      'and no submission.',
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
    about: 'The port for mail submission by SMTP with STARTTLS (RFC 6409), usually 587. Empty: none.',
    default: '',
    parse: optionalPort,
  },
  submissionsPort: {
    name: 'POSTERN_SUBMISSIONS_PORT',
    about: 'The port for mail submission by SMTP with implicit TLS (RFC 8314), usually 465. Empty: none.',
    default: '',
    parse: optionalPort,
  },
  suppressOn: {
    name: 'POSTERN_SUPPRESS_ON',
    about:
      "Enhanced status codes (RFC 3463), separated by commas, of bounces that add the recipient to the project's " +
      'suppression list. `none`: no bounce does. A complaint always does.',
    default: '5.1.1, 5.1.2, 5.1.6, 5.1.10, 5.2.1',
    parse: bounceCodes,
  },
  systemMailFrom: {
    name: 'POSTERN_SYSTEM_MAIL_FROM',
    about:
      'The sender address of system mail: invitations, password reset links, confirmations of forwards, and notices to ' +
      'project owners. It is sent through POSTERN_MTA_HOSTS. Empty: no system mail is sent (a warning is logged), and ' +
      'no forward becomes active.',
    default: '',
    parse: mailbox,
  },
  mtaHosts: {
    name: 'POSTERN_MTA_HOSTS',
    about:
      'The MTAs of the provider `service`, separated by commas: smtp://host:25, smtp://user:password@host:587 or ' +
      'smtps://host:465. STARTTLS is used if it is offered. If a password is set, TLS and a valid certificate are ' +
      'required, as with smtps. Empty: mail to this provider stays queued.',
    default: '',
    secret: true,
    parse: mtaHosts,
  },
  metricsHost: {
    name: 'POSTERN_METRICS_HOST',
    about: 'The address of the metrics and health listener, which is separate from every public port.',
    default: '127.0.0.1',
    parse: text,
  },
  metricsPort: {
    name: 'POSTERN_METRICS_PORT',
    about:
      'The port of the metrics and health listener, different for each process on a machine: GET /metrics (Prometheus), ' +
      '/healthz and /readyz. Empty: none.',
    default: '',
    parse: optionalPort,
  },
  otlpEndpoint: {
    name: 'POSTERN_OTLP_ENDPOINT',
    about:
      'URL of an OpenTelemetry collector that accepts traces by OTLP over HTTP: http://127.0.0.1:4318. Empty: no tracing.',
    default: '',
    parse: (value: string) => (value === '' ? undefined : bareUrl(value).origin),
  },
  traceShare: {
    name: 'POSTERN_TRACE_SHARE',
    about:
      'The fraction of requests and submissions without an incoming trace context to trace, from 0 to 1.',
    default: '1',
    parse: share,
  },
  logLevel: {
    name: 'POSTERN_LOG_LEVEL',
    about: 'The log level.',
    default: 'info',
    parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  stopGraceSeconds: {
    name: 'POSTERN_STOP_GRACE_SECONDS',
    about: 'How long a process may take to finish in-flight requests when it shuts down.',
    default: '25',
    parse: integer(1, 3600),
  },
}
