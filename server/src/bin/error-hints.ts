import { PosternError } from '../platform/errors.ts'

/**
 * What stands in the way outside of the program, as a sentence with its remedy. Undefined for anything else:
 * that is a bug, and its stack trace is wanted.
 */
const remedies: Record<string, string> = {
  ECONNREFUSED:
    'Nothing answers at the address of the database. Is PostgreSQL running, and is the port right?',
  ENOTFOUND: 'The host is not known.',
  ETIMEDOUT: 'The database does not answer in time.',
  EADDRINUSE:
    'Another process listens at this address already. Stop it, or set POSTERN_HTTP_PORT, POSTERN_BOUNCE_PORT or POSTERN_METRICS_PORT: each process needs its own.',
  EADDRNOTAVAIL: 'POSTERN_HTTP_HOST or POSTERN_INTAKE_HOST is not an address of this machine.',
  EACCES:
    'This user may not listen at this address. Ports below 1024 need a privilege; set POSTERN_HTTP_PORT or POSTERN_BOUNCE_PORT.',
  // https://www.postgresql.org/docs/15/errcodes-appendix.html
  '28P01': 'The password in the address of the database is wrong.',
  '28000': 'PostgreSQL does not let this login in. Look at the login in the address and at pg_hba.conf.',
  '3D000': 'The database named in the address does not exist. Create it first.',
  '22023': 'The database roles are not there. Run `postern migrate` first.',
  '42501':
    'The login of the application may not act for a plane. Run `postern migrate`, which says what to grant.',
  '42704': 'The login in POSTERN_DATABASE_URL does not exist. Create it first.',
  '42P01': 'The tables are not there. Run `postern migrate` first.',
  '3F000': 'The tables are not there. Run `postern migrate` first.',
}

/** What carries no code. */
const wordings: [pattern: RegExp, remedy: string][] = [
  [
    /client password must be a string/,
    'PostgreSQL asks for a password and the address of the database has none.',
  ],
  [/does not support SSL/, 'The server has no TLS, which the address of the database asks for.'],
  [
    /Failed to decrypt private key/,
    'The signing keys were made with a secret that is not in POSTERN_AUTH_SECRETS.',
  ],
]

export function errorHint(error: unknown): string | undefined {
  const root = rootOf(error)
  if (!(root instanceof Error)) return undefined
  const remedy = remedyOf(root)
  if (remedy !== undefined) return `${remedy} (${root.message})`
  return error instanceof PosternError ? `${error.message} (${root.message})` : undefined
}

export function remedyOf(error: unknown): string | undefined {
  const root = rootOf(error)
  if (!(root instanceof Error)) return undefined
  const code = 'code' in root && typeof root.code === 'string' ? root.code : ''
  return remedies[code] ?? wordings.find(([pattern]) => pattern.test(root.message))?.[1]
}

function rootOf(error: unknown): unknown {
  const root = error instanceof PosternError && error.cause !== undefined ? error.cause : error
  // Several addresses were tried, each in vain.
  return root instanceof AggregateError ? rootOf(root.errors[0]) : root
}
