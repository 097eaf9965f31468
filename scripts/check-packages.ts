import { readFile } from 'node:fs/promises'

/**
 * Checks for exact versions, known licences, a lock file without download URLs, and a reason for every direct dependency
 * (docs/dependencies.md).
 */
const allowedLicences = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'Unlicense',
  'Python-2.0',
  'PSF-2.0',
  'MIT OR Apache-2.0',
  'Apache-2.0 AND MIT',
  '(MIT OR CC0-1.0)',
  '(Apache-2.0 OR MIT)',
])

/** Weak copyleft: acceptable for build and test tools, which are not distributed. */
const allowedForTools = new Set(['MPL-2.0'])

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

interface Lock {
  packages: Record<
    string,
    Manifest & { version?: string; license?: string; resolved?: string; link?: boolean; dev?: boolean }
  >
}

const read = async <T>(path: string): Promise<T> =>
  JSON.parse(await readFile(new URL(`../${path}`, import.meta.url), 'utf8'))

const problems: string[] = []

const direct = new Set<string>()
for (const path of ['package.json', 'server/package.json', 'console/package.json', 'site/package.json']) {
  const { dependencies, devDependencies } = await read<Manifest>(path)
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    direct.add(name)
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
      problems.push(`${path}: ${name} is not pinned exactly (${version})`)
  }
}

const { packages } = await read<Lock>('package-lock.json')
const installed = Object.entries(packages).filter(
  ([path, { link }]) => path.includes('node_modules/') && !link,
)
for (const [path, { license = '', resolved, dev }] of installed) {
  if (!allowedLicences.has(license) && !(dev && allowedForTools.has(license)))
    problems.push(`${path}: licence ${license || 'unknown'} is not on the list`)
  if (resolved?.startsWith('http')) problems.push(`${path}: the lock file contains a download URL`)
}

const page = await readFile(new URL('../docs/dependencies.md', import.meta.url), 'utf8')
const rows = [...page.matchAll(/^\| `([^`]+)` \| ([^|]+) \| [^|]+ \|$/gm)].map(
  ([, name = '', licence = '']) => ({
    name,
    licence,
  }),
)
for (const name of direct) {
  const count = rows.filter((row) => row.name === name).length
  if (count !== 1) problems.push(`docs/dependencies.md: ${name} has ${count} rows, not one`)
}
for (const { name, licence } of rows) {
  const actual = installed
    .filter(([path]) => path.endsWith(`node_modules/${name}`))
    .map(([, one]) => one.license)
  if (!direct.has(name)) problems.push(`docs/dependencies.md: ${name} is not a direct dependency`)
  else if (!actual.includes(licence))
    problems.push(`docs/dependencies.md: the licence of ${name} is ${actual}`)
}

process.stdout.write(`${installed.length} packages checked.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
