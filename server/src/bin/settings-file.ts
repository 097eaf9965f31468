import { UsageError } from '../platform/errors.ts'

/** Takes `--settings <file>` off the front of what was typed. */
export function splitSettingsFile(words: string[]): { settingsFile?: string; rest: string[] } {
  const [option, settingsFile = '', ...rest] = words
  return option === '--settings' ? { settingsFile, rest } : { rest: words }
}

/** Settings that the environment does not have are taken from the file. */
export function loadSettingsFile(file: string | undefined): void {
  if (file === undefined) return
  try {
    process.loadEnvFile(file)
  } catch (error) {
    throw new UsageError(`The file of settings cannot be read: ${(error as Error).message}`)
  }
}
