import { existsSync } from 'node:fs'
import { chmod, cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type OutputChunk, rolldown } from 'rolldown'
import { isStale } from './stale.ts'

const root = path.resolve(import.meta.dirname, '..')
const server = path.join(root, 'server')
/** A package of its own: `npm pack ./server/dist`. */
const built = path.join(server, 'dist')
const manifestFile = path.join(built, 'package.json')

/** What operators run, and what tests start. */
export const builtProgram = path.join(built, 'postern.js')

/** The server was never built, or something of it has changed since. */
export const isServerStale = (): boolean =>
  isStale(manifestFile, [
    import.meta.filename,
    path.join(root, 'package-lock.json'),
    ...['src', 'migrations', 'roles.sql', 'package.json'].map((part) => path.join(server, part)),
    path.join(root, 'deploy'),
    ...(existsSync(consoleFiles) ? [consoleFiles] : []),
  ])

const consoleFiles = path.join(server, 'console')

/**
 * The program and every package that it uses, in a few files: it starts in a third of the time, is installed without
 * fetching anything, and what is installed is what was tested. Beside it lies what it reads.
 */
export async function buildServer(): Promise<void> {
  await rm(built, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: server,
    // What is a thread's first module must be a file by itself, which does nothing but that when it is loaded.
    input: {
      postern: 'src/bin/postern.js',
      'composer-threads': 'src/formats/composer-threads.ts',
      'analysis-threads': 'src/core/mail/inbound/analysis-threads.ts',
      'dkim-pairs': 'src/core/control/domains/dkim-key-pool.ts',
      'body-reader': 'src/customer/messages/body-reader.ts',
    },
    platform: 'node',
    // An alternative to what `pg` does, for those who install it.
    external: ['pg-native'],
    logLevel: 'warn',
  })
  const { output } = await bundle.write({
    dir: built,
    format: 'esm',
    chunkFileNames: 'parts/[name]-[hash].js',
    // Packages in CommonJS ask for modules of Node.js by it.
    banner: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);`,
  })
  await bundle.close()
  await chmod(builtProgram, 0o755)
  for (const part of ['migrations', 'roles.sql'])
    await cp(path.join(server, part), path.join(built, part), { recursive: true })
  await cp(path.join(root, 'deploy'), path.join(built, 'deploy'), { recursive: true })
  if (existsSync(consoleFiles)) await cp(consoleFiles, path.join(built, 'console'), { recursive: true })
  for (const part of ['LICENSE', 'README.md']) await cp(path.join(root, part), path.join(built, part))
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  await writeFile(
    path.join(built, 'THIRD-PARTY.txt'),
    await licencesOf(chunks.flatMap(({ moduleIds }) => moduleIds)),
  )
  // Last: it says that the rest is there.
  await writeFile(manifestFile, await manifestOf())
}

async function manifestOf(): Promise<string> {
  const { version, description, license, type, engines } = JSON.parse(
    await readFile(path.join(server, 'package.json'), 'utf8'),
  )
  const manifest = {
    name: 'postern',
    version,
    description,
    license,
    type,
    engines,
    bin: { postern: 'postern.js' },
  }
  return `${JSON.stringify(manifest, undefined, 2)}\n`
}

/** Every package that something was taken from, with the terms under which it may be handed on. */
async function licencesOf(modules: string[]): Promise<string> {
  const folders = new Set(modules.map(packageFolderOf).filter((folder) => folder !== undefined))
  const notices = await Promise.all([...folders].sort().map(noticeOf))
  return [
    'Postern contains these packages. Each stands under the terms that follow its name.\n',
    ...new Set(notices),
  ].join(`\n${'─'.repeat(80)}\n\n`)
}

const packageFolderOf = (module: string): string | undefined =>
  module.match(/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/)?.[0]

async function noticeOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'))
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort()
  const texts = await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')))
  return [`${name} ${version} (${license})\n`, ...texts.map((text) => `${text.trim()}\n`)].join('\n')
}
