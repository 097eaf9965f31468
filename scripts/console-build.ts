import { execFile } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const root = path.resolve(import.meta.dirname, '..')
const source = path.join(root, 'console')
const built = path.join(root, 'server/console/index.html')

/** The console was never built, or something of it has changed since. */
export function isConsoleStale(): boolean {
  if (!existsSync(built)) return true
  const builtAt = statSync(built).mtimeMs
  const parts = readdirSync(path.join(source, 'src'), { recursive: true, encoding: 'utf8' })
  return [
    'index.html',
    'package.json',
    'vite.config.ts',
    ...parts.map((part) => path.join('src', part)),
  ].some((part) => statSync(path.join(source, part)).mtimeMs > builtAt)
}

export async function buildConsole(): Promise<void> {
  const vite = path.join(root, 'node_modules/vite/bin/vite.js')
  await promisify(execFile)(process.execPath, [vite, 'build', '--logLevel', 'warn'], { cwd: source })
}
