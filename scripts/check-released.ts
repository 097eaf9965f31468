import { readFile } from 'node:fs/promises'
import { apiFaults } from './released/api-compatibility.ts'
import { apiContract } from './released/api-contract.ts'
import { migrationFaults, migrationsNow, readRecords, releasedVersions } from './released/records.ts'

/**
 * Compares the OpenAPI document with that of every recorded release: a change must not break a released client. The
 * migrations of a release must not change. Before the release, `npm run release:record` accepts a change.
 */
const document = JSON.parse(
  await readFile(new URL('../openapi/postern.v1.json', import.meta.url), 'utf8'),
) as object
const records = await readRecords()
const faults: string[] = []

const recorded = records.map(({ version }) => version)
for (const version of await releasedVersions())
  if (!recorded.includes(version))
    faults.push(`released/${version} is missing: the changelog lists ${version}`)

const current = apiContract(document)
const now = await migrationsNow()
for (const record of records) {
  const found = apiFaults(record.api, current)
  faults.push(...[...new Set(found)].map((fault) => `Breaks clients of ${record.version}: ${fault}`))
  if (found.length > 0 && !record.isReleased)
    faults.push(`${record.version} is not released yet. If this is intended: npm run release:record`)
  if (record.isReleased) faults.push(...migrationFaults(record, now))
}

for (const fault of faults) process.stderr.write(`${fault}\n`)
process.stdout.write(
  `Compared with ${records.map(({ version, isReleased }) => `${version}${isReleased ? '' : ' (not released)'}`).join(', ')}.\n`,
)
process.exitCode = faults.length === 0 ? 0 : 1
