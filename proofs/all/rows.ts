/**
 * The guarantees and goals that `npm run prove:all` tests: S is speed, R reliability, X security. Each row is tested by
 * one or more commands in their full form. bench/README.md and proofs/README.md describe the rows.
 */
export interface Row {
  id: string
  title: string
  /** Run in sequence; the worst verdict counts. Without a command, the row has no script yet. */
  commands: readonly Command[]
}

export interface Command {
  /** An npm script. */
  script: string
  args: readonly string[]
  environment: Readonly<Record<string, string>>
  /** How the seed is passed. Without a seed, the command makes no random choices. */
  seed: 'option' | 'environment' | 'none'
}

/** Prints its result (bench/result.ts). `text` is the name of the script and its arguments. */
function command(seed: Command['seed'], text: string, environment: Command['environment'] = {}): Command {
  const [script = '', ...args] = text.split(' ')
  return { script, args, environment, seed }
}

const measured = (text: string): Command => command('none', `bench:${text}`)
const seeded = (text: string): Command => command('option', `prove:${text}`)
const unseeded = (text: string): Command => command('none', `prove:${text}`)
/** Runs test files. Their verdict is the exit code. */
const tests = (text: string, environment?: Command['environment']): Command =>
  command('environment', text, environment)
const files = (...names: string[]): Command =>
  tests(['test', ...names.map((name) => `server/src/${name}.test.ts`)].join(' '))

export const rows: readonly Row[] = [
  {
    id: 'S1',
    title: 'Messages accepted individually, compared with pgbench',
    commands: [measured('accept --only S1 --rounds 5 --seconds 15')],
  },
  {
    id: 'S2',
    title: 'Messages accepted in batches of 100, compared with pgbench',
    commands: [measured('accept --only S2 --rounds 5 --seconds 15')],
  },
  {
    id: 'S3',
    title: 'Administrative edits of different projects, compared with pgbench',
    commands: [measured('admin-patch --only S3 --rounds 5 --seconds 15')],
  },
  {
    id: 'S4',
    title: 'Administrative edits of one project, compared with pgbench',
    commands: [measured('admin-patch --only S4 --rounds 5 --seconds 15')],
  },
  {
    id: 'S5',
    title: 'Lists of 1,000,000 projects and 10,000,000 audit rows, compared with SQL',
    commands: [measured('lists --rounds 3')],
  },
  {
    id: 'S6',
    title: 'Messages sent to a local sink, compared with nodemailer',
    commands: [measured('dispatch --rounds 5')],
  },
  {
    id: 'S7',
    title: 'Webhooks delivered to a local receiver, compared with undici',
    commands: [measured('webhooks --rounds 5 --events 30000')],
  },
  {
    id: 'S8',
    title: 'Acceptance and claims with up to 10,000,000 messages and 100,000 projects',
    commands: [measured('growth')],
  },
  {
    id: 'S9',
    title: 'Memory and start-up time of an idle process, compared with bare Fastify',
    commands: [measured('idle')],
  },
  {
    id: 'S10',
    title: 'CPU time of the whole journey of a message, compared with Postfix',
    commands: [measured('journey')],
  },
  {
    id: 'S11',
    title: 'CPU time of the same journey, compared with the previous version',
    commands: [measured('journey --against previous')],
  },
  {
    id: 'S12',
    title: 'Statements per second of an idle installation',
    commands: [measured('cost --idle-seconds 60')],
  },
  { id: 'R1', title: '500 kills of the API, the worker and the intake', commands: [seeded('kills')] },
  { id: 'R2', title: 'A crash at every point in the life of a message', commands: [seeded('crash-points')] },
  { id: 'R3', title: '50 kills of PostgreSQL', commands: [seeded('database')] },
  { id: 'R4', title: 'Failover of three PostgreSQL servers', commands: [seeded('failover')] },
  { id: 'R5', title: '50 faults of Postfix, and ten minutes without an intake', commands: [seeded('mta')] },
  { id: 'R6', title: 'Full disks of PostgreSQL and Postfix', commands: [seeded('disk')] },
  { id: 'R7', title: 'Clocks that differ and jump', commands: [seeded('clock')] },
  {
    id: 'R8',
    title: 'Slow and broken connections to MTAs, PostgreSQL and receivers',
    commands: [seeded('network'), seeded('receivers')],
  },
  { id: 'R9', title: 'An old snapshot while the queue is active', commands: [unseeded('snapshot')] },
  { id: 'R10', title: 'An endpoint that is down for 72 hours', commands: [tests('prove:endpoint')] },
  {
    id: 'R11',
    title: 'One message per second while another project has a backlog of 200,000',
    commands: [measured('fairness')],
  },
  {
    id: 'R12',
    title: '200 concurrent requests for the last message of a quota',
    commands: [files('core/mail/messages/acceptance')],
  },
  {
    id: 'R13',
    title: '1,000,000 reports in random order, repeated, forged and late',
    commands: [tests('prove:reports')],
  },
  { id: 'X1', title: 'Every route with every caller and target', commands: [tests('prove:access')] },
  {
    id: 'X2',
    title: '1,000,000 requests generated from the OpenAPI document',
    commands: [tests('prove:requests')],
  },
  {
    id: 'X3',
    title: '10,000,000 inputs to the parsers',
    commands: [
      // Nine test files generate this number of inputs each.
      tests('prove:parsers', { POSTERN_TEST_INPUTS: '1200000' }),
    ],
  },
  {
    id: 'X4',
    title: 'Internal addresses and rebinding DNS as targets',
    commands: [files('platform/net/ssrf', 'platform/net/net-guard', 'admin/conformance/ssrf')],
  },
  {
    id: 'X5',
    title: 'Tampering with the audit log, and 100,000 changes under failures',
    commands: [tests('prove:audit')],
  },
  { id: 'X6', title: 'Canary secrets', commands: [tests('prove:canaries')] },
  {
    id: 'X7',
    title: 'Ciphertexts in another row, column or project',
    commands: [files('core/control/secrets/vault')],
  },
  {
    id: 'X8',
    title: 'SMTP smuggling and header injection',
    commands: [
      files('providers/smuggling', 'intake/smtp/strict-server', 'testing/across-planes/submitted-mail'),
    ],
  },
  {
    id: 'X9',
    title: 'Concurrent writers with If-Match, and 1,000 requests with one Idempotency-Key',
    commands: [tests('prove:races'), files('admin/conformance/idempotency')],
  },
  {
    id: 'X10',
    title: 'Attacks by one tenant while another one sends normally',
    commands: [unseeded('neighbours')],
  },
  {
    id: 'X11',
    title: 'A cap on everything that a tenant or a stranger can create or send',
    commands: [
      files(
        'customer/conformance/caps',
        'customer/conformance/storage',
        'http/public-limits',
        'intake/submission/submission-limits',
        'intake/bounces/hostile-senders',
      ),
    ],
  },
  {
    id: 'X12',
    title: 'Account enumeration',
    commands: [
      files(
        'signin/sign-in',
        'signin/password-backoff',
        'signin/reset-password',
        'customer/members/members',
        'core/control/members/invitations',
      ),
    ],
  },
]
