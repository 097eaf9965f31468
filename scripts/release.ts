import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { checksums, sign } from './release/checksums.ts'
import { containerFiles } from './release/container-files.ts'
import { debianPackage } from './release/debian-package.ts'
import { architectures } from './release/runtime.ts'
import { softwareBill } from './release/software-bill.ts'
import { isRecorded, releasedVersions } from './released/records.ts'

/**
 * `npm run release`: builds every artifact of this version in release/. Two runs on one commit produce the same bytes: all
 * times are the time of the commit. With POSTERN_RELEASE_KEY, a private SSH key, the checksums are signed.
 */
const root = path.resolve(import.meta.dirname, '..')
const folder = path.join(root, 'release')
const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
const say = (line: string): void => void process.stdout.write(`${line}\n`)

const changed = run('git', 'status', '--porcelain').trim()
if (changed !== '') throw new Error(`A release is built from a commit, but files have changed:\n${changed}`)
const commit = {
  id: run('git', 'rev-parse', 'HEAD').trim(),
  time: Number(run('git', 'log', '-1', '--format=%ct')),
}
const { version } = JSON.parse(readFileSync(path.join(root, 'server/package.json'), 'utf8')) as {
  version: string
}
// Before the changelog lists the version, this is a trial.
if ((await releasedVersions()).includes(version) && !(await isRecorded(version)))
  throw new Error(
    `released/${version} does not describe this commit. Remove the heading from the changelog, run \`npm run release:record\`, and restore the heading.`,
  )

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
say(`Postern ${version}, commit ${commit.id}`)
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
const built = path.join(root, 'server/dist')
const bill = await softwareBill(root, version, commit.time)
writeFileSync(path.join(folder, `postern-${version}.cdx.json`), bill)
say('npm package')
run('npm', 'pack', built, '--silent', '--pack-destination', folder)
for (const architecture of architectures) {
  say(`Debian package for ${architecture}`)
  await debianPackage({ root, built, folder, version, time: commit.time, bill }, architecture)
}
say('container files')
containerFiles(root, folder, version)
checksums(folder)
say(sign(folder, process.env['POSTERN_RELEASE_KEY']))
for (const line of readFileSync(path.join(folder, 'SHA256SUMS'), 'utf8').trim().split('\n')) say(line)
