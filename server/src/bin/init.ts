import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { bareUrl, signerKey } from '../config/values.ts'
import { publicKeyOf, signingKeyFrom, writeKeys } from '../core/control/audit/keys.ts'
import { UsageError } from '../platform/errors.ts'
import { packageFile } from '../platform/package-files.ts'
import { Wrong } from '../platform/settings.ts'
import { command, print, say } from './command.ts'
import { InitFiles } from './init-files.ts'

const units = [
  ...['postern', 'postern-api', 'postern-worker', 'postern-intake'],
  ...['postern-signer', 'postern-migrate'],
]
const postfixFiles = ['main.cf', 'master.cf', 'reports', 'inside']

/**
 * `postern init` writes the files that one machine needs to run Postern under systemd. It does not start anything or
 * create users or databases; it prints the next steps. If run again, it keeps every existing secret and setting.
 */
export const init = command('init', {
  async ''(given) {
    const { user = 'postern', directory = '/etc/postern', systemd = '/etc/systemd/system', postfix } = given
    const users = {
      postern: user,
      signer: given['signer-user'] ?? `${user}-signer`,
      migrate: given['migrate-user'] ?? `${user}-migrate`,
    }
    const publicUrl = originOf(given['public-url'])
    const notes: string[] = []
    const report = (line: string): void => void (given.json ? notes.push(line) : say(line))
    for (const other of [users.signer, users.migrate]) await groupOf(other)
    const files = new InitFiles(await groupOf(user), report)
    await files.folder(directory)
    const write = (name: string, text: string) => files.write(path.join(directory, name), text)
    await write('auth-secrets', freshSecret())
    await write('master-keys', freshSecret())
    await files.writeForRoot(path.join(directory, 'signer-key'), freshSecret('signer-1'))
    const publicKey = await publicKeyIn(path.join(directory, 'signer-key'))
    await write('postern.env', settingsText(publicUrl, user, directory, publicKey))
    await files.writeForRoot(path.join(directory, 'signer.env'), signerText(users.signer))
    await files.writeForRoot(path.join(directory, 'migrate.env'), migrateText(users.migrate))
    await files.replace(path.join(directory, 'database.sql'), await databaseText(users))
    for (const line of await missingIn(path.join(directory, 'postern.env'), publicKey)) report(line)
    for (const unit of units)
      await files.replace(
        path.join(systemd, `${unit}.service`),
        unitText(await shipped('systemd', `${unit}.service`), users, directory),
      )
    if (postfix !== undefined)
      for (const file of postfixFiles)
        await files.takeOver(path.join(postfix, file), await shipped('postfix', file))
    print(given.json, { user, users, directory, notes }, () =>
      nextSteps(user, directory, postfix !== undefined),
    )
  },
})

// In the repository the folder is next to the server; in the built package it is inside the package.
const deploy = [packageFile('deploy'), packageFile('../deploy')].find((folder) => existsSync(folder)) ?? ''

const shipped = (...names: string[]): Promise<string> => readFile(path.join(deploy, ...names), 'utf8')

interface Users {
  /** Runs api, worker and intake. */
  postern: string
  /** Has the key that signs audit checkpoints. */
  signer: string
  /** Owns the tables. */
  migrate: string
}

/** The shipped unit, with the chosen users and directory. */
const unitText = (text: string, { postern, signer, migrate }: Users, directory: string): string =>
  text
    .replaceAll(/^(User|Group)=postern$/gm, `$1=${postern}`)
    .replaceAll(/^(User|Group)=postern-signer$/gm, `$1=${signer}`)
    .replaceAll(/^(User|Group)=postern-migrate$/gm, `$1=${migrate}`)
    .replaceAll('/etc/postern', directory)

const freshSecret = (name = '1'): string => `${name}:${randomBytes(32).toString('hex')}\n`

async function publicKeyIn(file: string): Promise<string> {
  const seed = signerKey((await readFile(file, 'utf8')).trim())
  if (!seed) throw new UsageError(`${file} is empty; it must contain the signer's key.`)
  const [line = ''] = writeKeys(publicKeyOf(signingKeyFrom(seed)))
  return line
}

/** `init` never changes an existing settings file, so the operator has to add new settings by hand. */
async function missingIn(file: string, publicKey: string): Promise<string[]> {
  const text = await readFile(file, 'utf8')
  if (text.includes('POSTERN_AUDIT_PUBLIC_KEYS')) return []
  return [
    `${file} has no settings for the audit signer. Add:`,
    ...signerSettings(publicKey).map((line) => `  ${line}`),
  ]
}

function originOf(value: string): string {
  try {
    return bareUrl(value).origin
  } catch (error) {
    throw error instanceof Wrong ? new UsageError(`--public-url ${error.message}`) : error
  }
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

const checkpointFile = 'POSTERN_AUDIT_CHECKPOINT_FILE=/var/lib/postern-signer/checkpoints'
const signerSocket = 'POSTERN_AUDIT_SIGNER_SOCKET=/run/postern-signer/socket'

const signerSettings = (publicKey: string): string[] => [
  signerSocket,
  `POSTERN_AUDIT_PUBLIC_KEYS=${publicKey}`,
  checkpointFile,
]

const signerText = (
  user: string,
): string => `# Settings of \`postern signer\`. Its key is in the file signer-key, which only root can read; systemd passes it to the process.

${signerSocket}
${checkpointFile}
# A read-only login.
POSTERN_SIGNER_DATABASE_URL=postgres://${user}@localhost/postern?host=/var/run/postgresql
`

const migrateText = (
  user: string,
): string => `# Read by \`postern migrate\` only, in addition to postern.env: the login that is a member of the table owner's role.

POSTERN_DATABASE_OWNER_URL=postgres://${user}@localhost/postern?host=/var/run/postgresql
`

const settingsText = (publicUrl: string, user: string, directory: string, publicKey: string): string =>
  `# Postern settings, one per line: docs/operations/configuration.md lists them. The systemd units and
# \`postern --settings\` read this file.

POSTERN_PUBLIC_URL=${publicUrl}
# Over the Unix socket, where PostgreSQL identifies the system user (peer authentication): no password is needed.
POSTERN_DATABASE_URL=postgres://${user}@localhost/postern?host=/var/run/postgresql
POSTERN_AUTH_SECRETS_FILE=${directory}/auth-secrets
POSTERN_MASTER_KEYS_FILE=${directory}/master-keys
# The audit signer runs as a separate user, the only one that has the key and writes the checkpoints.
${signerSettings(publicKey).join('\n')}
POSTERN_MTA_HOSTS=smtp://127.0.0.1:25
# The reverse proxy on this machine.
POSTERN_TRUSTED_PROXIES=127.0.0.1, ::1
`

/** The strict setup from docs/operations/database.md. Running the file twice changes nothing. */
const databaseText = async ({ postern, signer, migrate }: Users): Promise<string> => `\\set ON_ERROR_STOP on

${await readFile(packageFile('roles.sql'), 'utf8')}
${loginText(postern, 'postern_admin, postern_customer, postern_mail, postern_identity')}
${loginText(migrate, 'postern_owner')}
${loginText(signer, 'postern_readonly')}
-- In earlier installations the application was a member of the owner role.
select 'revoke postern_owner from "${postern}"' where exists (select from pg_auth_members join pg_roles on pg_roles.oid = member
                where rolname = '${postern}' and roleid = 'postern_owner'::regrole)
\\gexec

select 'create database postern owner postern_owner encoding "UTF8" template template0'
 where not exists (select from pg_database where datname = 'postern')
\\gexec
`

/** The login has the same name as the system user (peer authentication). */
const loginText = (name: string, roles: string): string =>
  `select 'create role "${name}" login noinherit in role ${roles}'
 where not exists (select from pg_roles where rolname = '${name}')
\\gexec
`

const nextSteps = (user: string, directory: string, withPostfix: boolean): string =>
  `
Next steps:
  runuser -u postgres -- psql < ${directory}/database.sql
${withPostfix ? '  systemctl restart postfix\n' : ''}  systemctl enable --now postern
  runuser -u ${user} -- postern --settings ${directory}/postern.env admin create --email you@example.com

Back up ${directory}/auth-secrets and ${directory}/master-keys separately from the database: without them the secrets in the
database cannot be decrypted. Print the audit log's public key and store it on another machine:
  runuser -u ${user} -- postern --settings ${directory}/postern.env audit key`
