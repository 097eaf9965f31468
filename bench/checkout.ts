import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const exec = promisify(execFile)
const root = path.resolve(import.meta.dirname, '..')

/** For git: everything except Markdown, such as the page with the results and the pages that explain them. */
export const codePathspec = ['--', '.', ':(exclude)*.md']

/** Another version of Postern to compare with. */
export interface Version {
  name: string
  program: string
}

/**
 * Finds a version by its directory (a working copy with its packages, or a built package), by a commit, or by `previous`:
 * the last release or, if there is none, the commit before the last code change. A commit is checked out and installed
 * under `.prove/`, and kept there.
 */
export async function versionOf(against: string): Promise<Version> {
  if (existsSync(against)) return { name: against, program: programIn(path.resolve(against)) }
  const commit = await git(
    'rev-parse',
    '--verify',
    `${against === 'previous' ? await previous() : against}^{commit}`,
  )
  const name = commit.slice(0, 8)
  const directory = path.join(root, '.prove/checkouts', name)
  if (!existsSync(directory)) await git('worktree', 'add', '--detach', directory, commit)
  // npm writes this file when it has finished.
  if (!existsSync(path.join(directory, 'node_modules/.package-lock.json')))
    await exec('npm', ['ci', '--no-audit', '--no-fund'], { cwd: directory })
  return { name, program: programIn(directory) }
}

function programIn(directory: string): string {
  const programs = ['server/src/bin/postern.js', 'postern.js'].map((file) => path.join(directory, file))
  const found = programs.find((program) => existsSync(program))
  if (found === undefined)
    throw new Error(`${directory} contains neither a working copy nor a built package.`)
  return found
}

async function previous(): Promise<string> {
  const tag = await git('describe', '--tags', '--abbrev=0', 'HEAD^').catch(() => undefined)
  if (tag) return tag
  const commits = await git('log', '-2', '--format=%H', ...codePathspec)
  return commits.split('\n')[1] ?? 'HEAD'
}

const git = async (...args: string[]): Promise<string> =>
  (await exec('git', args, { cwd: root })).stdout.trim()
