import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/**
 * One JSON object per line. Secrets do not belong in log calls at all; the redaction below is the net under
 * that rule, for the names under which one could slip in.
 */
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

export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths, censor: '[redacted]' },
  }
  if (destination) return pino(options, destination)
  const stdout = pino.destination({ dest: 1, sync: true })
  // A terminal that was closed must not keep the process from going on, or from stopping.
  stdout.on('error', () => {})
  return pino(options, stdout)
}
