import { UsageError } from '../platform/errors.ts'

/** Splits a leading `--settings <file>` from the arguments. */
export function splitSettingsFile(words: string[]): { settingsFile?: string; rest: string[] } {
  const [option, settingsFile = '', ...rest] = words
  return option === '--settings' ? { settingsFile, rest } : { rest: words }
}

/** Loads settings from the file. Variables that are already set in the environment are not changed. */
export function loadSettingsFile(file: string | undefined): void {
  if (file === undefined) return
  try {
    process.loadEnvFile(file)
  } catch (error) {
    throw new UsageError(`The settings file cannot be read: ${(error as Error).message}`)
  }
}
