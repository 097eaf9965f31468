import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { pages } from '../site/pages.ts'
import { isStale } from './stale.ts'

const root = path.resolve(import.meta.dirname, '..')
const source = path.join(root, 'site')

/** The path of the built documentation, next to the server's source, which reads it from there. */
const built = path.join(root, 'server/docs')
export const builtPage = path.join(built, 'index.html')

const ownSources = ['package.json', 'pages.ts', 'stage.ts', 'slugify.ts', 'reference', 'public']
const themeSources = ['config.ts', 'code-groups.ts', 'highlighting.ts', 'theme'].map((part) =>
  path.join('.vitepress', part),
)

/** Whether the documentation has never been built or its sources have changed since. */
export const isSiteStale = (): boolean =>
  isStale(builtPage, [
    ...[...ownSources, ...themeSources].map((part) => path.join(source, part)),
    path.join(root, 'openapi/postern.v1.json'),
    ...pages.map(({ file }) => path.join(root, file)),
  ])

export async function buildSite(signal?: AbortSignal): Promise<void> {
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, args, { cwd: source, ...(signal && { signal }) })
  await run('stage.ts')
  await run(path.join(root, 'node_modules/vitepress/bin/vitepress.js'), 'build')
}
