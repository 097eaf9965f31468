import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { releasesIn } from '../migrations/contract.ts'
import { type ApiContract, apiContract, contractText } from './api-contract.ts'

/**
 * released/<version>/ records what a release has promised: the API (api.json) and the checksums of its migrations
 * (migrations.sha256). `npm run release:record` writes the record of the version in server/package.json.
 *
 * A version is released when the changelog has a heading for it. Its record can no longer be rewritten then, and its
 * migrations can no longer be changed.
 */
const root = new URL('../../', import.meta.url)
const folder = new URL('released/', root)
const migrationsFolder = new URL('server/migrations/', root)

export interface ReleaseRecord {
  version: string
  isReleased: boolean
  api: ApiContract
  /** By file name. */
  migrations: Map<string, string>
}

export async function currentVersion(): Promise<string> {
  const { version } = JSON.parse(await readFile(new URL('server/package.json', root), 'utf8'))
  return version
}

/** The versions that the changelog lists. */
export const releasedVersions = async (): Promise<string[]> =>
  releasesIn(await readFile(new URL('CHANGELOG.md', root), 'utf8'))

/** In the order of versions. */
export async function readRecords(): Promise<ReleaseRecord[]> {
  const released = await releasedVersions()
  const entries = await readdir(folder, { withFileTypes: true })
  const versions = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  return Promise.all(
    versions.sort(byVersion).map(async (version) => ({
      version,
      isReleased: released.includes(version),
      api: JSON.parse(await readFile(new URL(`${version}/api.json`, folder), 'utf8')),
      migrations: checksumsIn(await readFile(new URL(`${version}/migrations.sha256`, folder), 'utf8')),
    })),
  )
}

/** The files of a record of the current state. */
export async function recordOfNow(): Promise<Record<string, string>> {
  const document = await readFile(new URL('openapi/postern.v1.json', root), 'utf8')
  const lines = [...(await migrationsNow())].map(([file, digest]) => `${digest}  ${file}\n`)
  return { 'api.json': contractText(apiContract(JSON.parse(document))), 'migrations.sha256': lines.join('') }
}

export async function writeRecord(version: string): Promise<void> {
  const record = new URL(`${version}/`, folder)
  await mkdir(record, { recursive: true })
  for (const [name, text] of Object.entries(await recordOfNow())) await writeFile(new URL(name, record), text)
}

/** Whether the record of this version describes the current state. */
export async function isRecorded(version: string): Promise<boolean> {
  for (const [name, text] of Object.entries(await recordOfNow()))
    if ((await readFile(new URL(`${version}/${name}`, folder), 'utf8').catch(() => '')) !== text) return false
  return true
}

export async function migrationsNow(): Promise<Map<string, string>> {
  const files = (await readdir(migrationsFolder)).filter((file) => file.endsWith('.sql')).sort()
  const digests = files.map(async (file) => {
    const content = await readFile(new URL(file, migrationsFolder))
    return [file, createHash('sha256').update(content).digest('hex')] as const
  })
  return new Map(await Promise.all(digests))
}

/** Every migration of a release that was changed or removed, or that sorts before one of them. */
export function migrationFaults(
  { version, migrations }: Pick<ReleaseRecord, 'version' | 'migrations'>,
  now: Map<string, string>,
): string[] {
  const last = [...migrations.keys()].sort().at(-1) ?? ''
  const changed = [...migrations].flatMap(([file, digest]) => {
    if (!now.has(file)) return [`${file} is gone, but ${version} contains it`]
    return now.get(file) === digest ? [] : [`${file} has changed since ${version}; add a new file instead`]
  })
  const inserted = [...now.keys()]
    .filter((file) => !migrations.has(file) && file < last)
    .map((file) => `${file} sorts before ${last}, which ${version} contains; give it a higher number`)
  return [...changed, ...inserted]
}

const checksumsIn = (text: string): Map<string, string> =>
  new Map(
    text
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line): [string, string] => {
        const [digest = '', file = ''] = line.split('  ')
        return [file, digest]
      }),
  )

const byVersion = (one: string, other: string): number => one.localeCompare(other, 'en', { numeric: true })
