import { appendFileSync, copyFileSync, existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'

/**
 * Logs of the parts that a test file starts, kept for the case that it fails: scripts/run-tests.ts names a folder in
 * POSTERN_TEST_LOGS, and removes what belongs to files that passed. Without that folder nothing is kept.
 */
const root = path.resolve(import.meta.dirname, '../../../..')
const folder = process.env['POSTERN_TEST_LOGS']
const counts = new Map<string, number>()

/** A new log of a part, such as `postfix`; several parts of one name are numbered. */
export function newPartLog(part: string): { append(text: string): void; copyFrom(file: string): void } {
  const number = (counts.get(part) ?? 0) + 1
  counts.set(part, number)
  const file = folder && path.join(folder, owner(), `${part}-${number}.log`)
  const prepare = (): string | undefined => {
    if (file) mkdirSync(path.dirname(file), { recursive: true })
    return file
  }
  return {
    append(text) {
      const target = prepare()
      if (target) appendFileSync(target, text)
    },
    copyFrom(source) {
      const target = existsSync(source) ? prepare() : undefined
      if (target) copyFileSync(source, target)
    },
  }
}

/** The test file that this process runs; `run` for what all files share. */
function owner(): string {
  const file = path.relative(root, process.argv[1] ?? '')
  return file.endsWith('.test.ts') ? file.replaceAll('/', '__') : 'run'
}
