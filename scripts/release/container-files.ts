import { execFileSync } from 'node:child_process'
import path from 'node:path'

/** The source files from which `docker build` makes the image, and compose.yaml. */
export function containerFiles(root: string, folder: string, version: string): void {
  const name = `postern-${version}-containers`
  const archive = execFileSync(
    'git',
    // All times are the time of the commit, because HEAD is one. Debian 12's git has no --mtime.
    ['archive', '--format=tar', `--prefix=${name}/`, 'HEAD', 'deploy'],
    { cwd: root, maxBuffer: 64 * 1024 * 1024 },
  )
  // -n: without the time of the compression.
  execFileSync('sh', ['-c', `gzip -9 -n > "$0"`, path.join(folder, `${name}.tar.gz`)], { input: archive })
}
