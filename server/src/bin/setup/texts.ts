import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { packageFile } from '../../platform/package-files.ts'

/** The contents of the files that `postern setup` writes. */
export interface Users {
  /** Runs api, worker and intake. */
  postern: string
  /** Has the key that signs audit checkpoints. */
  signer: string
  /** Owns the tables. */
  migrate: string
}

// In the repository the folder is next to the server; in the built package it is inside the package.
const deploy = [packageFile('deploy'), packageFile('../deploy')].find((folder) => existsSync(folder)) ?? ''

export const shipped = (...names: string[]): Promise<string> => readFile(path.join(deploy, ...names), 'utf8')

/** The shipped unit, with the chosen users and directory. */
export const unitText = (text: string, { postern, signer, migrate }: Users, directory: string): string =>
  text
    .replaceAll(/^(User|Group)=postern$/gm, `$1=${postern}`)
    .replaceAll(/^(User|Group)=postern-signer$/gm, `$1=${signer}`)
    .replaceAll(/^(User|Group)=postern-migrate$/gm, `$1=${migrate}`)
    .replaceAll('/etc/postern', directory)

export const freshSecret = (name = '1'): string => `${name}:${randomBytes(32).toString('hex')}\n`

const checkpointFile = 'POSTERN_AUDIT_CHECKPOINT_FILE=/var/lib/postern-signer/checkpoints'
const signerSocket = 'POSTERN_AUDIT_SIGNER_SOCKET=/run/postern-signer/socket'

export const signerSettings = (publicKey: string): string[] => [
  signerSocket,
  `POSTERN_AUDIT_PUBLIC_KEYS=${publicKey}`,
  checkpointFile,
]

export const signerText = (
  user: string,
): string => `# Settings of \`postern signer\`. Its key is in the file signer-key, which only root can read; systemd passes it to the process.

${signerSocket}
${checkpointFile}
# A read-only login.
POSTERN_SIGNER_DATABASE_URL=postgres://${user}@localhost/postern?host=/var/run/postgresql
`

export const migrateText = (
  user: string,
): string => `# Read by \`postern migrate\` only, in addition to postern.env: the login that is a member of the table owner's role.

POSTERN_DATABASE_OWNER_URL=postgres://${user}@localhost/postern?host=/var/run/postgresql
`

export interface Names {
  host: string
  returnPathHost: string
  systemMailFrom: string
}

export const settingsText = (
  { host, returnPathHost, systemMailFrom }: Names,
  user: string,
  directory: string,
  publicKey: string,
): string =>
  `# Postern settings, one per line: docs/operations/configuration.md lists them. The systemd units and
# \`postern --settings\` read this file.

POSTERN_PUBLIC_URL=https://${host}
# The host that receives bounces. Publish the DNS records that \`postern setup\` printed.
POSTERN_RETURN_PATH_HOST=${returnPathHost}
# The sender of invitations, password links and notices.
POSTERN_SYSTEM_MAIL_FROM=${systemMailFrom}
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
export const databaseText = async ({
  postern,
  signer,
  migrate,
}: Users): Promise<string> => `\\set ON_ERROR_STOP on

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
