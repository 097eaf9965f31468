import { currentVersion, releasedVersions, writeRecord } from './released/records.ts'

/**
 * `npm run release:record`: records the current API and migrations as those of this version (released/<version>/), until
 * the changelog lists the version as released.
 */
const version = await currentVersion()
if ((await releasedVersions()).includes(version)) {
  process.stderr.write(
    `${version} is released: the changelog lists it. Its record does not change; set the next version first.\n`,
  )
  process.exitCode = 1
} else {
  await writeRecord(version)
  process.stdout.write(`Recorded the current API and migrations as ${version}.\n`)
}
