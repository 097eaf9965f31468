import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { isStale } from './stale.ts'

const root = path.resolve(import.meta.dirname, '..')
const source = path.join(root, 'console')
const built = path.join(root, 'server/console/index.html')

/** Whether the console has never been built or its sources have changed since. */
export const isConsoleStale = (): boolean =>
  isStale(
    built,
    ['index.html', 'package.json', 'vite.config.ts', 'src'].map((part) => path.join(source, part)),
  )

export async function buildConsole(): Promise<void> {
  const vite = path.join(root, 'node_modules/vite/bin/vite.js')
  await promisify(execFile)(process.execPath, [vite, 'build', '--logLevel', 'warn'], { cwd: source })
}
