import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { renderUnicodeCompact } from 'uqr'
import { signerKey } from '../config/values.ts'
import { publicKeyOf, signingKeyFrom, writeKeys } from '../core/control/audit/keys.ts'
import { UsageError } from '../platform/errors.ts'
import { command, print, say } from './command.ts'
import { type Answers, checkGiven, type Given, readAnswers } from './setup/answers.ts'
import { SetupFiles } from './setup/files.ts'
import {
  type Credentials,
  createAdministrator,
  createDatabase,
  createUsers,
  hasPostfix,
  isPostfixUnused,
  obstacle,
  restartPostfix,
  runDoctor,
  startPostern,
} from './setup/machine.ts'
import { type DnsRecord, recordsOf } from './setup/records.ts'
import {
  databaseText,
  freshSecret,
  migrateText,
  settingsText,
  shipped,
  signerSettings,
  signerText,
  type Users,
  unitText,
} from './setup/texts.ts'

const units = [
  ...['postern', 'postern-api', 'postern-worker', 'postern-intake'],
  ...['postern-signer', 'postern-migrate'],
]
const postfixFiles = ['main.cf', 'master.cf', 'reports', 'inside']

interface Target {
  users: Users
  directory: string
  /** Undefined if the package has installed the units. */
  systemd: string | undefined
  /** Undefined if Postfix is not configured. */
  postfix: string | undefined
}

/**
 * `postern setup` makes an installation on one machine: it asks for what it cannot know, writes settings and secrets,
 * creates the users, the database and the first administrator, starts the services, and prints the DNS records. If run
 * again, it keeps every existing secret and setting.
 */
export const setup = command('setup', {
  async ''(given) {
    const { user = 'postern', directory = '/etc/postern', json, 'write-only': isWriteOnly } = given
    const problem = isWriteOnly ? undefined : obstacle()
    if (problem) throw new UsageError(problem)
    const users = {
      postern: user,
      signer: given['signer-user'] ?? `${user}-signer`,
      migrate: given['migrate-user'] ?? `${user}-migrate`,
    }
    checkGiven(given)
    const isNew = !(await hasSettings(path.join(directory, 'postern.env')))
    const answers = isNew ? await answersFrom(given, !isWriteOnly) : undefined
    if (!isWriteOnly) await createUsers(users)
    const notes: string[] = []
    const report = (line: string): void => void (json ? notes.push(line) : say(line))
    const postfix = await postfixFolder(given.postfix, isWriteOnly, report)
    const systemd = given.systemd ?? unitFolder()
    await writeFiles({ users, directory, systemd, postfix }, answers, report)
    const records = answers ? recordsOf(answers) : []
    if (isWriteOnly) {
      print(json, { notes, dns_records: records }, () =>
        [recordsText(records), manualSteps(users, directory)].join('\n'),
      )
      return
    }
    await start(directory, answers?.host, postfix !== undefined, report)
    const admin = answers?.admin ?? given.admin
    const credentials = admin === undefined ? undefined : await createAdministrator(user, directory, admin)
    const document = {
      ...{ notes, dns_records: records },
      ...(credentials && { administrator: { email: admin, ...credentials } }),
    }
    print(json, document, () =>
      [
        credentials ? credentialsText(admin ?? '', credentials) : noAdministratorText,
        recordsText(records),
        backupText(user, directory),
        answers && frontEndSteps(answers),
      ]
        .filter(Boolean)
        .join('\n'),
    )
    if (!json) {
      say('\nChecks (`postern doctor` repeats them):\n')
      await runDoctor(user, directory)
    }
  },
})

const hasSettings = async (file: string): Promise<boolean> =>
  existsSync(file) && /^POSTERN_/m.test(await readFile(file, 'utf8'))

const answersFrom = (given: Given, withAdmin: boolean): Promise<Answers> =>
  readAnswers(given, { isAsking: process.stdin.isTTY && process.stderr.isTTY, withAdmin })

/** A package of the distribution contains the units. */
const unitFolder = (): string | undefined =>
  existsSync('/lib/systemd/system/postern.service') ? undefined : '/etc/systemd/system'

async function postfixFolder(
  given: string | undefined,
  isWriteOnly: boolean,
  report: (line: string) => void,
): Promise<string | undefined> {
  if (given !== undefined) return given === 'none' ? undefined : given
  if (isWriteOnly || !hasPostfix()) return undefined
  if (await isPostfixUnused()) return '/etc/postfix'
  report(
    'kept     /etc/postfix, because it is already configured: docs/operations/mta.md describes the changes',
  )
  return undefined
}

async function writeFiles(
  { users, directory, systemd, postfix }: Target,
  answers: Answers | undefined,
  report: (line: string) => void,
): Promise<void> {
  for (const other of [users.signer, users.migrate]) await groupOf(other)
  const files = new SetupFiles(await groupOf(users.postern), report)
  await files.folder(directory)
  const at = (name: string) => path.join(directory, name)
  await files.write(at('auth-secrets'), freshSecret())
  await files.write(at('master-keys'), freshSecret())
  await files.writeForRoot(at('signer-key'), freshSecret('signer-1'))
  const publicKey = await publicKeyIn(at('signer-key'))
  if (answers)
    await files.writeSettings(at('postern.env'), settingsText(answers, users.postern, directory, publicKey))
  else report(`kept     ${at('postern.env')}`)
  await files.writeForRoot(at('signer.env'), signerText(users.signer))
  await files.writeForRoot(at('migrate.env'), migrateText(users.migrate))
  await files.replace(at('database.sql'), await databaseText(users))
  for (const line of await missingIn(at('postern.env'), publicKey)) report(line)
  if (systemd !== undefined)
    for (const unit of units)
      await files.replace(
        path.join(systemd, `${unit}.service`),
        unitText(await shipped('systemd', `${unit}.service`), users, directory),
      )
  if (postfix !== undefined)
    for (const file of postfixFiles)
      await files.takeOver(path.join(postfix, file), await shipped('postfix', file))
  if (answers?.frontEnd === 'caddy')
    await files.takeOver('/etc/caddy/Caddyfile', forHost(await shipped('caddy', 'Caddyfile'), answers.host))
  if (answers?.frontEnd === 'nginx')
    await files.replace(
      '/etc/nginx/sites-available/postern',
      forHost(await shipped('nginx', 'postern.conf'), answers.host),
    )
}

const forHost = (text: string, host: string): string => text.replaceAll('mail.example.org', host)

async function start(
  directory: string,
  host: string | undefined,
  withPostfix: boolean,
  report: (line: string) => void,
): Promise<void> {
  await createDatabase(await readFile(path.join(directory, 'database.sql'), 'utf8'))
  report('created  the database `postern` and its logins')
  if (withPostfix && host !== undefined) {
    await restartPostfix(host)
    report('started  postfix')
  }
  await startPostern()
  report('started  postern')
}

async function publicKeyIn(file: string): Promise<string> {
  const seed = signerKey((await readFile(file, 'utf8')).trim())
  if (!seed) throw new UsageError(`${file} is empty; it must contain the signer's key.`)
  const [line = ''] = writeKeys(publicKeyOf(signingKeyFrom(seed)))
  return line
}

/** `setup` never changes existing settings, so the operator has to add new ones by hand. */
async function missingIn(file: string, publicKey: string): Promise<string[]> {
  const text = await readFile(file, 'utf8')
  if (text.includes('POSTERN_AUDIT_PUBLIC_KEYS')) return []
  return [
    `${file} has no settings for the audit signer. Add:`,
    ...signerSettings(publicKey).map((line) => `  ${line}`),
  ]
}

/** Secrets are owned by root and readable by the service's group, but not by the signer's. */
async function groupOf(user: string): Promise<number> {
  const { stdout } = await promisify(execFile)('id', ['-g', user]).catch(() => {
    throw new UsageError(
      `The user "${user}" does not exist. Create it first: useradd --system --user-group --shell /usr/sbin/nologin ${user}. The ` +
        "Postern user must be a member of the signer's group: usermod --append --groups <signer> <user>",
    )
  })
  return Number(stdout)
}

const credentialsText = (email: string, { password, totp_uri, backup_codes }: Credentials): string => `
${email} is an administrator. These credentials cannot be shown again.

  password      ${password}
  authenticator ${totp_uri}
  backup codes  ${backup_codes.join(' ')}

Scan this code with an authenticator app:

${renderUnicodeCompact(totp_uri, { border: 2 })}
`

const noAdministratorText = `
No administrator was created. \`postern setup --admin <address>\` creates one.
`

const recordsText = (records: readonly DnsRecord[]): string =>
  records.length === 0
    ? ''
    : `
Publish these DNS records. The owner of the address, usually your hosting provider, sets the PTR record.

${records.map(({ name, type, value }) => `  ${name}  ${type}  ${value}`).join('\n')}
`

const frontEndSteps = ({ frontEnd, host }: Answers): string =>
  ({
    caddy: `
Start the reverse proxy; it obtains a certificate when the DNS records are published:
  systemctl reload-or-restart caddy
`,
    nginx: `
When the DNS records are published, obtain a certificate, and then add the site to nginx:
  certbot certonly --webroot -w /var/www/html -d ${host}
  ln -s ../sites-available/postern /etc/nginx/sites-enabled/postern && systemctl reload nginx
`,
    none: `
Postern serves HTTP on 127.0.0.1:8080. Forward https://${host} to it: docs/operations/front-end.md
`,
  })[frontEnd]

const backupText = (user: string, directory: string): string => `
Back up ${directory}/auth-secrets and ${directory}/master-keys separately from the database: without them the secrets in the
database cannot be decrypted. Print the audit log's public key and store it on another machine:
  runuser -u ${user} -- postern --settings ${directory}/postern.env audit key
`

const manualSteps = ({ postern: user }: Users, directory: string): string => `
Next steps:
  runuser -u postgres -- psql < ${directory}/database.sql
  systemctl enable --now postern
  runuser -u ${user} -- postern --settings ${directory}/postern.env admin create --email you@example.com
${backupText(user, directory)}`
