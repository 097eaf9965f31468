import { appendFileSync, copyFileSync, existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'

/**
 * Logs of the processes and servers that a test file starts, for analysing failures. scripts/run-tests.ts sets the
 * folder in POSTERN_TEST_LOGS and deletes the logs of files that passed. Without that folder nothing is written.
 */
const root = path.resolve(import.meta.dirname, '../../../..')
const folder = process.env['POSTERN_TEST_LOGS']
const counts = new Map<string, number>()

/** Creates a log, for example `postfix`. Several logs with the same name are numbered. */
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

/** The test file that this process runs; `run` for processes that all files share. */
function owner(): string {
  const file = path.relative(root, process.argv[1] ?? '')
  return file.endsWith('.test.ts') ? file.replaceAll('/', '__') : 'run'
}
