import closeWithGrace from 'close-with-grace'
import { loadSignerConfig } from '../config/config.ts'
import { signingKeyFrom } from '../core/control/audit/keys.ts'
import { CheckpointSigner, serveSigner } from '../core/control/audit/signer.ts'
import { Database } from '../platform/db/db.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { command } from './command.ts'

/** `postern signer`: signs audit checkpoints as a separate user (docs/operations/audit.md). */
export const signer = command('signer', { '': run })

const graceMs = 10_000

async function run(): Promise<void> {
  const { socket, file, key, databaseUrl, logLevel } = loadSignerConfig(process.env)
  // The key is in memory now; child processes must not inherit it.
  delete process.env['POSTERN_SIGNER_KEY']
  const log = createLogger(logLevel)
  const database = new Database({
    ...{ url: databaseUrl, applicationName: 'postern signer', poolSize: 1 },
    onError: (error, what) => log.error({ err: error }, what),
  })
  const signing = { db: database.as('readonly'), key: signingKeyFrom(key), file, log }
  const listener = await serveSigner(await CheckpointSigner.open(signing), socket, log)
  log.info({ socket, file, key: key.id }, 'signing')
  closeWithGrace({ delay: graceMs, logger: log }, async ({ err, signal }) => {
    if (err) log.fatal({ err }, 'stopping after an unexpected error')
    else log.info({ signal }, 'stopping')
    await listener.close()
    await database.close()
    log.info('stopped')
  })
}
