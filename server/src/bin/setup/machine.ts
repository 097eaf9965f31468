import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { UsageError } from '../../platform/errors.ts'
import type { Users } from './texts.ts'

/** What `postern setup` does on the machine itself: users, the database, and services. */
const timeoutMs = 120_000

const run = promisify(execFile)

/** Fails with the last line of what the command printed, and with the command, so that it can be repeated by hand. */
async function must(program: string, ...args: string[]): Promise<string> {
  try {
    return (await run(program, args, { timeout: timeoutMs })).stdout
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    const cause = stderr.trim().split('\n').at(-1) || message
    throw new UsageError(`\`${[program, ...args].join(' ')}\` failed: ${cause}`)
  }
}

/** Why this machine cannot be set up completely, if so. */
export function obstacle(): string | undefined {
  if (process.getuid?.() !== 0) return 'Run `postern setup` as root.'
  if (!existsSync('/run/systemd/system'))
    return 'systemd is not running on this machine. `postern setup --write-only` only writes the files.'
  if (!existsSync('/var/run/postgresql') || !existsSync('/usr/bin/psql'))
    return 'PostgreSQL is not installed on this machine. Install it (`apt-get install postgresql`), or use `postern setup --write-only` and run database.sql on your server.'
  return undefined
}

export async function createUsers({ postern, signer, migrate }: Users): Promise<void> {
  for (const user of [signer, migrate, postern]) {
    if (await exists(user)) continue
    const options = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent']
    await must('useradd', ...options, '--shell', '/usr/sbin/nologin', user)
  }
  await must('usermod', '--append', '--groups', signer, postern)
}

const exists = (user: string): Promise<boolean> =>
  run('id', ['-u', user]).then(
    () => true,
    () => false,
  )

/** As the superuser of the local PostgreSQL, who cannot read the file. */
export async function createDatabase(sql: string): Promise<void> {
  const psql = spawn('runuser', ['-u', 'postgres', '--', 'psql', '--quiet', '--no-psqlrc'], {
    stdio: ['pipe', 'ignore', 'pipe'],
    cwd: '/',
  })
  const problems: Buffer[] = []
  psql.stderr.on('data', (chunk: Buffer) => problems.push(chunk))
  psql.stdin.end(sql)
  const [code] = await once(psql, 'close')
  if (code !== 0)
    throw new UsageError(
      `The database could not be created: ${Buffer.concat(problems).toString().trim().split('\n').at(-1)}`,
    )
}

export const hasPostfix = (): boolean => existsSync('/usr/sbin/postconf')

/** What Debian writes to main.cf when it installs Postfix. */
const defaultParameters = new Set(
  `alias_database alias_maps append_dot_mydomain biff compatibility_level default_transport inet_interfaces
   inet_protocols mailbox_size_limit mydestination myhostname mynetworks myorigin readme_directory
   recipient_delimiter relay_transport relayhost smtp_tls_CApath smtp_tls_security_level
   smtp_tls_session_cache_database smtpd_banner smtpd_relay_restrictions smtpd_tls_cert_file
   smtpd_tls_key_file smtpd_tls_security_level`.split(/\s+/),
)

/** Nobody has configured it since it was installed, so no other use of Postfix depends on its configuration. */
export async function isPostfixUnused(): Promise<boolean> {
  if (!existsSync('/etc/postfix/main.cf')) return true
  const { stdout } = await run('postconf', ['-n'])
  const lines = stdout.split('\n').filter((line) => line !== '')
  // The installer writes a relay host only if it was given one.
  return lines.every(
    (line) => defaultParameters.has(line.split(' =')[0] ?? '') && !/^relayhost = \S/.test(line),
  )
}

export async function restartPostfix(host: string): Promise<void> {
  await must('postconf', '-e', `myhostname=${host}`)
  await must('systemctl', 'restart', 'postfix')
}

/** Migrates the database, and returns when the API is ready. */
export async function startPostern(): Promise<void> {
  await must('systemctl', 'daemon-reload')
  await must('systemctl', 'enable', '--quiet', 'postern', 'postern-signer')
  await must('systemctl', 'restart', 'postern-signer', 'postern')
}

/** Runs this program with the new settings, as the user that runs Postern. */
const asPostern = (user: string, directory: string, ...args: string[]): [string, string[]] => [
  'runuser',
  [
    ...['-u', user, '--', process.execPath, process.argv[1] ?? ''],
    ...['--settings', `${directory}/postern.env`, ...args],
  ],
]

export interface Credentials {
  password: string
  totp_uri: string
  backup_codes: string[]
}

export async function createAdministrator(
  user: string,
  directory: string,
  email: string,
): Promise<Credentials> {
  const [program, args] = asPostern(user, directory, 'admin', 'create', '--email', email, '--json')
  return JSON.parse(await must(program, ...args)) as Credentials
}

/** Prints what `postern doctor` finds. Its exit code is ignored: DNS records cannot be complete yet. */
export async function runDoctor(user: string, directory: string): Promise<void> {
  const [program, args] = asPostern(user, directory, 'doctor')
  await once(spawn(program, args, { stdio: 'inherit', cwd: '/' }), 'close')
}
