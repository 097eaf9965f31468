import { loadConfig } from '../config/config.ts'
import { type Context, createContext } from '../context/context.ts'
import { createLogger } from '../platform/telemetry/log.ts'

/** Runs a one-shot command with a context. Logs warnings and errors only. */
export async function withContext<T>(work: (context: Context) => Promise<T>): Promise<T> {
  const config = loadConfig(process.env)
  const context = createContext(config, createLogger('warn', 2), 'postern command')
  try {
    return await work(context)
  } finally {
    await context.close()
  }
}
