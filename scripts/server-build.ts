import { existsSync } from 'node:fs'
import { chmod, cp, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type OutputChunk, rolldown } from 'rolldown'
import { licencesOf } from './licences.ts'
import { isStale } from './stale.ts'

const root = path.resolve(import.meta.dirname, '..')
const server = path.join(root, 'server')
/** A complete package: `npm pack ./server/dist`. */
const built = path.join(server, 'dist')
const manifestFile = path.join(built, 'package.json')

/** The program that operators and tests run. */
export const builtProgram = path.join(built, 'postern.js')

/** Whether the server has never been built or its sources have changed since. */
export const isServerStale = (): boolean =>
  isStale(manifestFile, [
    import.meta.filename,
    path.join(root, 'package-lock.json'),
    ...['src', 'migrations', 'roles.sql', 'package.json'].map((part) => path.join(server, part)),
    path.join(root, 'deploy'),
    ...webFiles.map((part) => path.join(server, part)).filter((part) => existsSync(part)),
  ])

/** The files of the administrators' console, of the customers' app, and of the documentation. */
const webFiles = ['console', 'app', 'docs']

/**
 * Bundles the program and its packages into a few files, together with the data files. The bundle starts in a third of
 * the time, installs without a registry, and is identical to the tested build.
 */
export async function buildServer(): Promise<void> {
  await rm(built, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: server,
    // The entry module of a worker thread must be a separate file without other side effects.
    input: {
      postern: 'src/bin/postern.js',
      'composer-threads': 'src/formats/composer-threads.ts',
      'analysis-threads': 'src/core/mail/inbound/analysis-threads.ts',
      'dkim-pairs': 'src/core/control/domains/dkim-key-pool.ts',
      'body-reader': 'src/customer/messages/body-reader.ts',
    },
    platform: 'node',
    // An optional native binding of `pg`.
    external: ['pg-native'],
    logLevel: 'warn',
  })
  const { output } = await bundle.write({
    dir: built,
    format: 'esm',
    chunkFileNames: 'parts/[name]-[hash].js',
    // V8 keeps the source text in memory: twice its size if one character is not Latin-1. Lines and names stay, for stack traces.
    comments: false,
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
    // CommonJS packages use `require` to load Node.js modules.
    banner: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);`,
  })
  await bundle.close()
  await chmod(builtProgram, 0o755)
  for (const part of ['migrations', 'roles.sql'])
    await cp(path.join(server, part), path.join(built, part), { recursive: true })
  await cp(path.join(root, 'deploy'), path.join(built, 'deploy'), { recursive: true })
  for (const part of webFiles) {
    if (existsSync(path.join(server, part)))
      await cp(path.join(server, part), path.join(built, part), { recursive: true })
  }
  for (const part of ['LICENSE', 'README.md']) await cp(path.join(root, part), path.join(built, part))
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  await writeFile(
    path.join(built, 'THIRD-PARTY.txt'),
    await licencesOf(chunks.flatMap(({ moduleIds }) => moduleIds)),
  )
  // Written last: its existence means that the build is complete.
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
