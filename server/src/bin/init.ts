import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { bareUrl } from '../config-values.ts'
import { UsageError } from '../platform/errors.ts'
import { ownFile } from '../platform/own-files.ts'
import { Wrong } from '../platform/settings.ts'
import { command, print, say } from './command.ts'
import { Premises } from './premises.ts'

const units = ['postern', 'postern-api', 'postern-worker', 'postern-intake', 'postern-migrate']
const postfixFiles = ['main.cf', 'master.cf', 'transport', 'inside']

/**
 * Writes what one machine needs to run Postern under systemd. Starts nothing, and makes neither users nor databases: it
 * says what to do next. Called again, it keeps every secret and setting that is there.
 */
export const init = command('init', {
  async ''(given) {
    const { user = 'postern', directory = '/etc/postern', systemd = '/etc/systemd/system', postfix } = given
    const publicUrl = originOf(given['public-url'])
    const told: string[] = []
    const tell = (line: string): void => void (given.json ? told.push(line) : say(line))
    const premises = new Premises(await groupOf(user), tell)
    await premises.folder(directory)
    const write = (name: string, text: string) => premises.write(path.join(directory, name), text)
    await write('auth-secrets', freshSecret())
    await write('master-keys', freshSecret())
    await write('postern.env', settingsText(publicUrl, user, directory))
    await write('database.sql', await databaseText(user))
    for (const unit of units)
      await premises.replace(
        path.join(systemd, `${unit}.service`),
        unitText(await shipped('systemd', `${unit}.service`), user, directory),
      )
    if (postfix !== undefined)
      for (const file of postfixFiles)
        await premises.takeOver(path.join(postfix, file), await shipped('postfix', file))
    print(given.json, { user, directory, told }, () => nextSteps(user, directory, postfix !== undefined))
  },
})

// In the repository it lies beside the server, in the package within.
const deploy = [ownFile('deploy'), ownFile('../deploy')].find((folder) => existsSync(folder)) ?? ''

const shipped = (...names: string[]): Promise<string> => readFile(path.join(deploy, ...names), 'utf8')

/** As shipped, for another user and place. */
const unitText = (text: string, user: string, directory: string): string =>
  text.replaceAll(/^(User|Group)=postern$/gm, `$1=${user}`).replaceAll('/etc/postern', directory)

const freshSecret = (): string => `1:${randomBytes(32).toString('hex')}\n`

function originOf(value: string): string {
  try {
    return bareUrl(value).origin
  } catch (error) {
    throw error instanceof Wrong ? new UsageError(`--public-url ${error.message}`) : error
  }
}

/** Secrets are root's, and the group of the service reads them. */
async function groupOf(user: string): Promise<number> {
  const { stdout } = await promisify(execFile)('id', ['-g', user]).catch(() => {
    throw new UsageError(
      `There is no user "${user}". Make it first: useradd --system --user-group --shell /usr/sbin/nologin ${user}`,
    )
  })
  return Number(stdout)
}

const settingsText = (publicUrl: string, user: string, directory: string): string =>
  `# Settings of Postern, one in a line: docs/operations/configuration.md lists them. The systemd units read this file, and
# \`postern --settings\` does.

POSTERN_PUBLIC_URL=${publicUrl}
# By the socket of this machine, where PostgreSQL knows the user by itself: there is no password.
POSTERN_DATABASE_URL=postgres://${user}@localhost/postern?host=/var/run/postgresql
POSTERN_AUTH_SECRETS_FILE=${directory}/auth-secrets
POSTERN_MASTER_KEYS_FILE=${directory}/master-keys
POSTERN_MTA_HOSTS=smtp://127.0.0.1:25
# The front end of this machine.
POSTERN_TRUSTED_PROXIES=127.0.0.1, ::1
`

/** The simple way of docs/operations/database.md. A second time it changes nothing. */
const databaseText = async (user: string): Promise<string> => `\\set ON_ERROR_STOP on

${await readFile(ownFile('roles.sql'), 'utf8')}
select 'create role "${user}" login noinherit in role
  postern_owner, postern_admin, postern_customer, postern_mail, postern_identity'
 where not exists (select from pg_roles where rolname = '${user}')
\\gexec

select 'create database postern owner postern_owner encoding "UTF8" template template0'
 where not exists (select from pg_database where datname = 'postern')
\\gexec
`

const nextSteps = (user: string, directory: string, withPostfix: boolean): string =>
  `
Next:
  runuser -u postgres -- psql < ${directory}/database.sql
${withPostfix ? '  systemctl restart postfix\n' : ''}  systemctl enable --now postern
  runuser -u ${user} -- postern --settings ${directory}/postern.env admin create --email you@example.com

Keep ${directory}/auth-secrets and ${directory}/master-keys with your backups, and apart from those of the database: what
they encrypt cannot be read without them.`
