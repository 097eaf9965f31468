import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { bashCompletion, zshCompletion } from '../../server/src/bin/completion.ts'
import { manPage } from './man-page.ts'
import { type Architecture, nodeRuntime, nodeVersion } from './runtime.ts'

export interface Source {
  root: string
  /** The npm package. */
  built: string
  folder: string
  version: string
  /** Of the commit, in seconds. */
  time: number
  bill: string
}

const maintainer = 'Postern maintainers <maintainers@postern.example>'
const templates = path.join(import.meta.dirname, 'debian')
const template = (name: string): string => readFileSync(path.join(templates, name), 'utf8')

/** The program with its own Node.js, the units, the users, a man page and completions. Returns the file. */
export async function debianPackage(source: Source, architecture: Architecture): Promise<string> {
  const { folder, version, time } = source
  const tree = mkdtempSync(path.join(tmpdir(), 'postern-debian-'))
  const file = path.join(folder, `postern_${version}_${architecture}.deb`)
  try {
    writeTree(tree, source, architecture)
    writeControl(tree, version, architecture)
    // One thread: the bytes that several threads compress depend on their number.
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '--threads-max=1', '--build', tree, file], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, SOURCE_DATE_EPOCH: String(time) },
    })
    return file
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

function writeTree(tree: string, { built, version, time, bill }: Source, architecture: Architecture): void {
  chmodSync(tree, 0o755)
  const put = (name: string, text: string | Buffer, mode = 0o644): void => {
    const file = path.join(tree, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
    chmodSync(file, mode)
  }
  const runtime = nodeRuntime(architecture)
  const library = path.join(tree, 'usr/lib/postern')
  cpSync(built, library, { recursive: true })
  for (const name of ['README.md', 'LICENSE', 'THIRD-PARTY.txt']) rmSync(path.join(library, name))
  put('usr/lib/postern/bin/node', readFileSync(path.join(runtime, 'bin/node')), 0o755)
  put('usr/bin/postern', template('postern'), 0o755)
  const units = path.join(built, 'deploy/systemd')
  for (const unit of readdirSync(units))
    put(`lib/systemd/system/${unit}`, readFileSync(path.join(units, unit)))
  put('usr/lib/sysusers.d/postern.conf', template('sysusers.conf'))
  put('etc/postern/postern.env', template('postern.env'))
  put('usr/share/man/man1/postern.1.gz', gzip(manPage(version, time)))
  put('usr/share/bash-completion/completions/postern', `${bashCompletion()}\n`)
  put('usr/share/zsh/vendor-completions/_postern', `${zshCompletion()}\n`)
  const doc = 'usr/share/doc/postern'
  put(`${doc}/copyright`, copyright)
  put(`${doc}/NODE-LICENSE.gz`, gzip(readFileSync(path.join(runtime, 'LICENSE'), 'utf8')))
  put(`${doc}/THIRD-PARTY.txt.gz`, gzip(readFileSync(path.join(built, 'THIRD-PARTY.txt'), 'utf8')))
  put(`${doc}/changelog.gz`, gzip(changelog(version, time)))
  put(`${doc}/postern.cdx.json.gz`, gzip(bill))
  put('usr/share/lintian/overrides/postern', template('lintian-overrides'))
  setModes(tree)
}

/** Independent of the umask and of what built the files. */
function setModes(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory()) {
      chmodSync(file, 0o755)
      setModes(file)
    } else chmodSync(file, isProgram(file) ? 0o755 : 0o644)
  }
}

const isProgram = (file: string): boolean =>
  /\/usr\/(bin\/postern|lib\/postern\/bin\/node)$/.test(file) || /^#!/.test(firstBytes(file))

const firstBytes = (file: string): string =>
  statSync(file).size > 1_000_000 ? '' : readFileSync(file, 'latin1').slice(0, 2)

function writeControl(tree: string, version: string, architecture: Architecture): void {
  const kilobytes = Math.ceil(
    Number(
      execFileSync('du', ['-s', '--apparent-size', '--block-size=1', tree], { encoding: 'utf8' }).split(
        '\t',
      )[0],
    ) / 1024,
  )
  const control = path.join(tree, 'DEBIAN')
  mkdirSync(control)
  const put = (name: string, text: string, mode = 0o644): void => {
    writeFileSync(path.join(control, name), text)
    chmodSync(path.join(control, name), mode)
  }
  chmodSync(control, 0o755)
  put(
    'control',
    `Package: postern
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kilobytes}
Section: mail
Priority: optional
Depends: libc6 (>= 2.31), libgcc-s1, libstdc++6 (>= 11), systemd (>= 252)
Recommends: postgresql (>= 15), postfix
Suggests: caddy | nginx
Homepage: https://postern.example
Description: self-hosted, multi-tenant email sending service
 Postern accepts mail from customers by HTTP and SMTP, signs it with each
 customer's own DKIM keys, hands it to your own mail servers, and tells the
 customers what became of it. It has an app for customers and a console for
 the administrators of the service.
 .
 The package contains its own Node.js ${nodeVersion}. After the installation,
 run "postern setup".
`,
  )
  put('conffiles', '/etc/postern/postern.env\n')
  for (const script of ['postinst', 'prerm', 'postrm']) put(script, template(script), 0o755)
  const sums = execFileSync(
    'sh',
    [
      '-c',
      'find usr lib etc -type f ! -path etc/postern/postern.env -print0 | LC_ALL=C sort -z | xargs -0 md5sum',
    ],
    { cwd: tree, encoding: 'utf8' },
  )
  put('md5sums', sums)
}

const gzip = (text: string): Buffer => gzipSync(text, { level: 9 })

/** Debian Policy §4.4. The project's own changelog is CHANGELOG.md. */
function changelog(version: string, time: number): string {
  const date = new Date(time * 1000).toUTCString().replace('GMT', '+0000')
  return `postern (${version}) unstable; urgency=medium

  * Release ${version}.

 -- ${maintainer}  ${date}
`
}

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: postern

Files: *
Copyright: 2026 Postern maintainers
License: Apache-2.0

Files: usr/lib/postern/bin/node
Copyright: 2009-2026 Node.js contributors and others
License: Node.js
 Node.js and the libraries in it have several licences. Their texts are in
 /usr/share/doc/postern/NODE-LICENSE.gz.

License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.
 The packages that are part of the program, and their licences, are in
 /usr/share/doc/postern/THIRD-PARTY.txt.gz.
`
