import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const file = 'SHA256SUMS'

/** In the format of `sha256sum --check`. */
export function checksums(folder: string): void {
  const lines = readdirSync(folder)
    .sort()
    .map((name) => {
      const digest = createHash('sha256').update(readFileSync(path.join(folder, name)))
      return `${digest.digest('hex')}  ${name}\n`
    })
  writeFileSync(path.join(folder, file), lines.join(''))
}

/** With OpenSSH, which every Debian has: `ssh-keygen -Y verify` checks the signature. */
export function sign(folder: string, key: string | undefined): string {
  if (key === undefined) return `${file} is not signed: POSTERN_RELEASE_KEY is not set.`
  execFileSync('ssh-keygen', ['-Y', 'sign', '-n', 'postern-release', '-f', key, path.join(folder, file)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return `${file}.sig is the signature.`
}
