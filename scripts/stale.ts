import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'

/** Whether a file does not exist, or any of these sources has changed since the file was created. */
export function isStale(made: string, sources: readonly string[]): boolean {
  if (!existsSync(made)) return true
  const madeAt = statSync(made).mtimeMs
  return sources.some((source) => changedAt(source) > madeAt)
}

function changedAt(source: string): number {
  const stat = statSync(source)
  if (!stat.isDirectory()) return stat.mtimeMs
  const parts = readdirSync(source, { recursive: true, encoding: 'utf8' })
  return Math.max(stat.mtimeMs, ...parts.map((part) => statSync(path.join(source, part)).mtimeMs))
}
