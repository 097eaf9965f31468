import { readFile } from 'node:fs/promises'
import closeWithGrace from 'close-with-grace'
import { createApi } from '../api.ts'
import { type Config, loadConfig } from '../config.ts'
import { bounceDeps, type Context, createContext, workerDeps } from '../context.ts'
import { startBounces } from '../intake/bounces.ts'
import { UsageError } from '../platform/errors.ts'
import { createLogger } from '../platform/log.ts'
import { startWorker } from '../worker/worker.ts'
import { options } from './command.ts'

/** The commands that go on until they are told to stop. */
interface Part {
  /** From now on not ready, and nothing new is taken. */
  retire?(): void
  stop(graceMs: number): Promise<void>
}

export async function serve(
  name: string,
  args: string[],
  start: ((context: Context) => Promise<Part>)[],
): Promise<void> {
  options(args)
  const config = loadConfig(process.env)
  const log = createLogger(config.logLevel)
  const context = createContext(config, log, name)
  const parts: Part[] = []
  for (const startPart of start) parts.push(await startPart(context))

  // On SIGTERM or SIGINT: not ready, no new connections, what is under way finishes, the pools close.
  const graceMs = config.stopGraceSeconds * 1000
  closeWithGrace({ delay: graceMs, logger: log }, async ({ err, signal }) => {
    // Whatever happens below, such as a log whose terminal is gone.
    setTimeout(() => process.exit(1), graceMs).unref()
    if (err) log.fatal({ err }, 'stopping after an unexpected error')
    else log.info({ signal }, 'stopping')
    for (const part of parts) part.retire?.()
    await Promise.all(parts.map((part) => part.stop(graceMs)))
    await context.close()
    log.info('stopped')
  })
}

export async function apiPart(context: Context): Promise<Part> {
  const { config, log, jobs } = context
  const { app, retire } = createApi(context)
  await app.listen({ host: config.host, port: config.port })
  void jobs.start()
  log.info({ addresses: app.addresses(), public_url: config.publicUrl.origin }, 'serving')
  return {
    retire,
    async stop(graceMs) {
      await app.close()
      await jobs.stop(graceMs)
    },
  }
}

export async function intakePart(context: Context): Promise<Part> {
  const { config, log } = context
  const listener = await startBounces(bounceDeps(context, await certificateOf(config)))
  log.info({ host: config.intakeHost, port: listener.port }, 'taking in reports')
  return listener
}

async function certificateOf({ intakeTlsCertificate, intakeTlsKey }: Config) {
  if (intakeTlsCertificate === undefined || intakeTlsKey === undefined) return undefined
  try {
    return { cert: await readFile(intakeTlsCertificate), key: await readFile(intakeTlsKey) }
  } catch (error) {
    throw new UsageError(`The certificate of the intake cannot be read: ${(error as Error).message}`)
  }
}

export const workerPart = async (context: Context): Promise<Part> => startWorker(workerDeps(context))
