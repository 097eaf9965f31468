import { UsageError } from '../platform/errors.ts'

/** Splits a leading `--settings <file>` from the arguments. */
export function splitSettingsFile(words: string[]): { settingsFile?: string; rest: string[] } {
  const [option, settingsFile = '', ...rest] = words
  return option === '--settings' ? { settingsFile, rest } : { rest: words }
}

/** The file adds settings that the environment does not have. */
export function loadSettingsFile(file: string | undefined): void {
  if (file === undefined) return
  try {
    process.loadEnvFile(file)
  } catch (error) {
    throw new UsageError(`The settings file cannot be read: ${(error as Error).message}`)
  }
}
