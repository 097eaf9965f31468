import closeWithGrace from 'close-with-grace'
import { createApi } from '../api.ts'
import { loadConfig } from '../config.ts'
import { createContext } from '../context.ts'
import { startHousekeeping } from '../housekeeping.ts'
import { createLogger } from '../platform/log.ts'
import { type Command, options } from './command.ts'

export const api: Command = {
  summary: 'Serve the HTTP interface.',
  async run(args) {
    options(args)
    const config = loadConfig(process.env)
    const log = createLogger(config.logLevel)
    const context = createContext(config, log, 'postern api')
    const { app, retire } = createApi(context)

    await app.listen({ host: config.host, port: config.port })
    const housekeeping = startHousekeeping(context)
    // On SIGTERM or SIGINT: not ready, no new connections, the requests under way finish, the pools close.
    const graceMs = config.stopGraceSeconds * 1000
    closeWithGrace({ delay: graceMs, logger: log }, async ({ err, signal }) => {
      // Whatever happens below, such as a log whose terminal is gone.
      setTimeout(() => process.exit(1), graceMs).unref()
      if (err) log.fatal({ err }, 'stopping after an unexpected error')
      else log.info({ signal }, 'stopping')
      retire()
      await app.close()
      await housekeeping.stop()
      await context.close()
      log.info('stopped')
    })
    log.info({ addresses: app.addresses(), public_url: config.publicUrl.origin }, 'serving')
  },
}
