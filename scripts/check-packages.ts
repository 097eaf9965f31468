import { readFile } from 'node:fs/promises'

/** Checks for exact versions, known licences, and a lock file without download URLs. */
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

for (const path of ['package.json', 'server/package.json', 'console/package.json']) {
  const { dependencies, devDependencies } = await read<Manifest>(path)
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
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

process.stdout.write(`${installed.length} packages checked.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
