import { PosternError } from '../errors.ts'

/**
 * Translates database failures into errors for the caller.
 *
 * Codes: https://www.postgresql.org/docs/15/errcodes-appendix.html
 */
const serialisationFailure = '40001'
const deadlockDetected = '40P01'

const unavailableCodes = new Set([
  '58030', // I/O error
  '55P03', // lock not available (lock_timeout)
  '57014', // query canceled (statement_timeout)
  '57P01', // admin shutdown
  '57P02', // crash shutdown
  '57P03', // cannot connect now
  '25P03', // idle-in-transaction timeout
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
])

// The driver sets no code on these errors.
const connectionLost =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client (has encountered a connection error|was closed))/

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** The driver's own timeout: the server did not respond at all. */
export const isTimedOut = (error: unknown): boolean =>
  error instanceof Error && error.message === 'Query read timeout'

export function isRetryable(error: unknown): boolean {
  const code = codeOf(error)
  return code === serialisationFailure || code === deadlockDetected
}

/** `cached plan must not change result type`: a migration changed a table that a prepared statement reads. */
export const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === '0A000' && /cached plan/.test((error as Error).message)

function isUnavailable(error: unknown): boolean {
  const code = codeOf(error)
  return (
    isRetryable(error) ||
    isStalePlan(error) ||
    unavailableCodes.has(code) ||
    code.startsWith('08') || // connection exception
    code.startsWith('53') || // insufficient resources: disk full, too many connections, out of memory
    (error instanceof Error && connectionLost.test(error.message))
  )
}

/** `read_only_sql_transaction`. In a read-write transaction it means that the server is a standby. */
const readOnly = '25006'

export function translateFailure(error: unknown, accessMode?: 'read only' | 'read write'): unknown {
  const isStandby = accessMode === 'read write' && codeOf(error) === readOnly
  return error instanceof PosternError || !(isStandby || isUnavailable(error)) ? error : unavailable(error)
}

// Lock and statement timeouts, as well as deadlocks and serialization failures after all retries. PostgreSQL has rolled the
// transaction back; a new one may succeed.
const overdueCodes = new Set(['55P03', '57014', serialisationFailure, deadlockDetected])

const isUnavailableError = (error: unknown): error is PosternError =>
  error instanceof PosternError && error.code === 'unavailable'

/** The transaction timed out or ran out of retries, and was rolled back. */
export const isOverdue = (error: unknown): boolean =>
  isUnavailableError(error) && overdueCodes.has(codeOf(error.cause))

/** The database cannot be reached, or the outcome of a commit is unknown. */
export const isDatabaseAway = (error: unknown): boolean => isUnavailableError(error) && !isOverdue(error)

export const unavailable = (cause: unknown): PosternError =>
  new PosternError('unavailable', 'The database is unavailable. Try again shortly.', {
    cause,
    retryAfterSeconds: 1,
  })

/** If the connection fails during COMMIT, the outcome is unknown and must not be reported as a failure. */
export function commitFailure(error: unknown): unknown {
  if (isRetryable(error) || !isUnavailable(error)) return error
  return new PosternError(
    'unavailable',
    'The connection to the database was lost while the change was being saved, so its outcome is unknown. ' +
      'Repeat the request with the same Idempotency-Key, or check the resource first.',
    { cause: error, retryAfterSeconds: 1 },
  )
}
