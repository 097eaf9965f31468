import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { codePathspec } from '../../bench/checkout.ts'
import type { RowVerdict } from '../../bench/result.ts'

/** The result of one row, as stored in `.prove/` and written to bench/RESULTS.md. */
export interface RowResult {
  id: string
  /** The measured commit: see `measuredCommit`. */
  commit: string
  verdict: RowVerdict
  figures: string
  /** Null if the row makes no random choices. */
  seed: number | null
  /** RFC 3339. */
  startedAt: string
  seconds: number
  machine: string
}

const exec = promisify(execFile)

const git = async (root: string, ...args: string[]): Promise<string> =>
  (await exec('git', args, { cwd: root })).stdout.trim()

/** The last commit that changed more than Markdown. */
export const measuredCommit = (root: string): Promise<string> =>
  git(root, 'log', '-1', '--format=%H', ...codePathspec)

/** Uncommitted changes, except to Markdown. With such changes, a result would name the wrong commit. */
export const uncommittedFiles = (root: string): Promise<string> =>
  git(root, 'status', '--porcelain', ...codePathspec)

/** One file per row. It is written when the row has ended, so an interrupted row runs again. */
export class Bookkeeping {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  /** The row's result for this commit. */
  async find(id: string, commit: string): Promise<RowResult | undefined> {
    const text = await readFile(this.#fileOf(id), 'utf8').catch(() => undefined)
    const result: RowResult | undefined = text === undefined ? undefined : JSON.parse(text)
    return result?.commit === commit ? result : undefined
  }

  async write(result: RowResult): Promise<void> {
    await mkdir(this.folder, { recursive: true })
    const file = this.#fileOf(result.id)
    await writeFile(`${file}.new`, `${JSON.stringify(result, undefined, 2)}\n`)
    await rename(`${file}.new`, file)
  }

  #fileOf(id: string): string {
    return path.join(this.folder, `${id}.json`)
  }
}
