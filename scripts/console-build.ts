import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { isStale } from './stale.ts'

const root = path.resolve(import.meta.dirname, '..')
const source = path.join(root, 'console')

/** Where Vite writes each entrance, for the server. */
const entrances = { admin: 'server/console', app: 'server/app' }
const sources = ['package.json', 'vite.config.ts', 'public', 'src'].map((part) => path.join(source, part))

/** Whether an entrance has never been built or its sources have changed since. */
export const isConsoleStale = (): boolean =>
  Object.values(entrances).some((built) => isStale(path.join(root, built, 'index.html'), sources))

export async function buildConsole(): Promise<void> {
  const vite = path.join(root, 'node_modules/vite/bin/vite.js')
  for (const mode of Object.keys(entrances)) {
    const options = ['build', '--mode', mode, '--logLevel', 'warn']
    await promisify(execFile)(process.execPath, [vite, ...options], { cwd: source })
  }
}
