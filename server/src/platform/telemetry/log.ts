import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/** Logs one JSON object per line. Code must never log secrets; redaction by field name is a second line of defense. */
const secretNames = [
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'new_password',
  'current_password',
  'secret',
  'token',
  'backup_codes',
  'totp_uri',
  'private_key',
]

const paths = secretNames.flatMap((name) => {
  const key = /^\w+$/.test(name) ? `.${name}` : `["${name}"]`
  return [key.replace(/^\./, ''), `*${key}`, `*.*${key}`, `*.*.*${key}`]
})

/** Logs to standard output by default. Commands that print a result log to standard error (2). */
export function createLogger(level: string, to: DestinationStream | 1 | 2 = 1): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths, censor: '[redacted]' },
    serializers: { err: withoutRows },
  }
  if (typeof to === 'object') return pino(options, to)
  const stream = pino.destination({ dest: to, sync: true })
  // A closed terminal must not crash the process or block its shutdown.
  stream.on('error', () => {})
  return pino(options, stream)
}

/**
 * A child logger without redaction, for lines with a fixed set of fields. Redaction takes 80 µs per line; the rest takes 3
 * µs.
 */
export const unredacted = (log: Logger): Logger => log.child({}, { redact: { paths: [] } })

/** Removes the fields in which PostgreSQL quotes the failing row, which can contain secrets. */
function withoutRows(error: Error): object {
  const { detail: _detail, where: _where, internalQuery: _query, ...rest } = pino.stdSerializers.err(error)
  return rest
}
