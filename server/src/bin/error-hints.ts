import { PosternError } from '../platform/errors.ts'

/**
 * Hints for errors caused by something outside the program: a sentence with a remedy. Any other error is a bug, and its
 * stack trace is printed.
 */
const remedies: Record<string, string> = {
  ECONNREFUSED:
    'Connection to the database refused. Check that PostgreSQL is running and that the port is correct.',
  ENOTFOUND: 'The host name cannot be resolved.',
  ETIMEDOUT: 'The connection to the database timed out.',
  EADDRINUSE:
    'Another process is already listening on this address. Stop it, or change POSTERN_HTTP_PORT, POSTERN_BOUNCE_PORT or POSTERN_METRICS_PORT: each process needs its own.',
  EADDRNOTAVAIL: 'POSTERN_HTTP_HOST or POSTERN_INTAKE_HOST is not an address of this machine.',
  EACCES:
    'Permission to listen on this address was denied. Ports below 1024 require a privilege; change POSTERN_HTTP_PORT or POSTERN_BOUNCE_PORT.',
  // https://www.postgresql.org/docs/15/errcodes-appendix.html
  '28P01': 'The password in the database URL is wrong.',
  '28000': 'PostgreSQL rejects this login. Check the user in the database URL, and pg_hba.conf.',
  '3D000': 'The database in the database URL does not exist. Create it first.',
  '22023': 'The database roles do not exist. Run `postern migrate` first.',
  '42501':
    "The application's login is not a member of a required role. Run `postern migrate`, which prints the missing grant.",
  '42704': 'The login in POSTERN_DATABASE_URL does not exist. Create it first.',
  '42P01': 'The tables do not exist. Run `postern migrate` first.',
  '3F000': 'The tables do not exist. Run `postern migrate` first.',
}

/** Hints for errors without a code, by message. */
const messageHints: [pattern: RegExp, remedy: string][] = [
  [/client password must be a string/, 'PostgreSQL requires a password, and the database URL has none.'],
  [/does not support SSL/, 'The database URL requires TLS, which the server does not support.'],
  [
    /Failed to decrypt private key/,
    'The signing keys are encrypted with a secret that is not in POSTERN_AUTH_SECRETS.',
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
  return remedies[code] ?? messageHints.find(([pattern]) => pattern.test(root.message))?.[1]
}

function rootOf(error: unknown): unknown {
  const root = error instanceof PosternError && error.cause !== undefined ? error.cause : error
  // Several addresses were tried, and each failed.
  return root instanceof AggregateError ? rootOf(root.errors[0]) : root
}
