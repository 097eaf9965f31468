import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { seed } from '../server/src/testing/harness/random.ts'
import type { TestRecord } from './test-recorder.ts'

/**
 * The results of a test run: the duration of each file, the failed tests, and the logs of the processes (PostgreSQL,
 * Postfix, Knot, nginx, Postern) that the failed files started. Stored in test-results/ until the next run; CI keeps
 * the results of all its steps.
 */
const root = path.resolve(import.meta.dirname, '..')
const folder = path.join(root, 'test-results')

export { seed }

export class Results {
  readonly #home: string
  readonly #recordFiles: string[] = []
  #hasEndedWell = true
  records: TestRecord[] = []

  constructor(home: string) {
    this.#home = home
    mkdirSync(this.logs, { recursive: true })
  }

  /** The folder for the logs of the processes that tests start (server/src/testing/harness/part-logs.ts). */
  get logs(): string {
    return path.join(this.#home, 'logs')
  }

  newRecordFile(): string {
    const file = path.join(this.#home, `records-${this.#recordFiles.length + 1}.ndjson`)
    this.#recordFiles.push(file)
    return file
  }

  noteExit(code: number | null): void {
    if (code !== 0) this.#hasEndedWell = false
  }

  async read(): Promise<void> {
    const texts = await Promise.all(this.#recordFiles.map((file) => readFile(file, 'utf8').catch(() => '')))
    this.records = texts.flatMap((text) => text.split('\n').filter(Boolean)).map((line) => JSON.parse(line))
    const failed = this.failedFiles().map(logFolderOf)
    for (const one of readdirSync(this.logs))
      if (!failed.includes(one) && one !== 'run') rmSync(path.join(this.logs, one), { recursive: true })
  }

  get isGreen(): boolean {
    return this.#hasEndedWell && this.failures().length === 0
  }

  failures(): { file: string; test: string; error: string }[] {
    return this.records.filter((record) => record.type === 'failure')
  }

  failedFiles(): string[] {
    return [...new Set(this.failures().map(({ file }) => file))]
  }

  logsOf(file: string): string | undefined {
    const logs = path.join(this.logs, logFolderOf(file))
    return existsSync(logs) ? path.relative(root, logs) : undefined
  }

  remove(): void {
    rmSync(this.#home, { recursive: true, force: true })
  }
}

/** The same rule as in server/src/testing/harness/part-logs.ts. */
const logFolderOf = (file: string): string => file.replaceAll('/', '__')

let made = 0

export function makeResults(): Results {
  // CI consists of several runs, and lists each run's logs at the end.
  const isPartOfCi = process.env['POSTERN_TEST_REPORT'] !== undefined
  if (made === 0 && !isPartOfCi)
    for (const old of existsSync(folder) ? readdirSync(folder) : []) removeOld(old)
  return new Results(path.join(folder, `${process.pid}-${++made}`))
}

/** Removes the results of finished runs; another run may be in progress in this working copy. */
function removeOld(name: string): void {
  const pid = Number.parseInt(name, 10)
  if (existsSync(`/proc/${pid}`)) return
  rmSync(path.join(folder, name), { recursive: true, force: true })
}

export function slowestFiles(records: readonly TestRecord[], count = 10): string {
  const files = records.filter((record) => record.type === 'file').sort((a, b) => b.ms - a.ms)
  const seconds = (ms: number): string => (ms / 1000).toFixed(1).padStart(8)
  const sum = files.reduce((total, { ms }) => total + ms, 0)
  const rows = files.slice(0, count).map(({ file, ms }) => `${seconds(ms)} s  ${file}`)
  return `\nThe slowest of ${files.length} files (seed ${seed}):\n${rows.join('\n')}\n${seconds(sum)} s  all, several at a time\n`
}

/** The command that repeats a single file with the same seed. */
function commandFor(file: string): string {
  const scenario = /^e2e\/((?:(?:console|app)\/)?\d+)-/.exec(file)?.[1]
  return `POSTERN_TEST_SEED=${seed} ${scenario ? `npm run e2e -- ${scenario}` : `npm test -- ${file}`}`
}

/** Printed last by a failed run. CI prints it again at the end (POSTERN_TEST_REPORT is the file). */
export function reportFailures(first: Results, again: Results | undefined): void {
  const stillFails = new Set(again?.failures().map(({ file, test }) => `${file} ${test}`))
  const stateOf = (file: string, test: string): string => {
    if (!again) return 'FAILED'
    return stillFails.has(`${file} ${test}`) ? 'FAILED TWICE' : 'FLAKY, passed when repeated'
  }
  const blocks = first.failedFiles().map((file) => {
    const tests = first.failures().filter((failure) => failure.file === file)
    const logs = first.logsOf(file)
    return [
      ...tests.map(({ test, error }) => {
        const firstLines = error.split('\n').slice(0, 5)
        return `${stateOf(file, test)}: ${file}: ${test}\n${indent(firstLines)}`.trimEnd()
      }),
      `  repeat: ${commandFor(file)}`,
      ...(logs ? [`  logs:   ${logs}`] : []),
    ].join('\n')
  })
  if (blocks.length === 0) blocks.push('FAILED: the test runner exited without reporting a failed test')
  announce(`${blocks.join('\n')}\n`)
}

export const indent = (lines: readonly string[]): string =>
  lines.map((line) => `    ${line.slice(0, 300)}\n`).join('')

/** Writes to standard output and to the CI report. */
export function announce(text: string): void {
  process.stdout.write(`\n${text}`)
  const report = process.env['POSTERN_TEST_REPORT']
  if (report) appendFileSync(report, text)
}
