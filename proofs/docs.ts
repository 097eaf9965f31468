import { spawnSync } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type Cluster, startCluster } from '../server/src/testing/peers/postgres.ts'
import { type Block, blocksOf, pagesWithBlocks } from './docs/blocks.ts'
import { openPlace, type Place } from './docs/dev-installation.ts'
import { before, brought, inPlaceOf } from './docs/reader.ts'
import { tryReceivers } from './docs/receivers.ts'

/**
 * `npm run prove:docs`: runs the marked code blocks of the documentation (proofs/docs/blocks.ts), on an installation
 * started by `npm run dev`. Each page runs from beginning to end in one shell. A block fails if one of its commands
 * fails, or if a command succeeds that should fail according to the page. `npm run prove:docs -- 'sending|domains'`
 * runs the pages that match this regular expression.
 *
 * Differences from the page: placeholders are replaced (proofs/docs/reader.ts); `postern` is run from the working copy;
 * and `sudo -u postgres` uses the superuser of a private PostgreSQL.
 */
const root = path.resolve(import.meta.dirname, '..')
const say = (line: string) => process.stdout.write(`${line}\n`)

/** Covered by `npm run prove:install`. */
const install = 'docs/guide/install.md'
const database = 'docs/operations/database.md'
const webhooks = 'docs/guide/webhooks.md'
/** This page changes the running installation's keys, so it must be the last one. */
const last = 'docs/operations/secrets.md'

const shell = `
set -u -o pipefail
exec 3>&1 >>"$PROVE_SAID" 2>&1
failed=()
refused() {
  local code=$1
  [ "$code" != 22 ] || code=$(grep -E '^[45][0-9][0-9]$' "$PROVE_PAGE/statuses" | tail -n 1)
  failed+=("$code")
  echo "-- fails with $code: $2"
}
trap 'refused $? "$BASH_COMMAND"' ERR
curl() { command curl --max-time 30 --fail-with-body --write-out '%{stderr}%{http_code}\\n' "$@" 2>>"$PROVE_PAGE/statuses"; }
npm() { POSTERN_DEV_FOLDER=$PROVE_DEV_FOLDER command npm "$@"; }
postern() { node "$PROVE_ROOT/server/src/bin/postern.js" "$@"; }
sudo() { shift 2; "$@"; }
told() { sed -n "s/^ *$1 *//p" "$PROVE_SAID" | tail -n 1; }
finished() {
  if [ "\${failed[*]}" != "$2" ]; then
    echo "line $1 fails with \${failed[*]:-nothing}, not with \${2:-nothing}" >&3
    exit 1
  fi
  failed=()
}
cd "$PROVE_PAGE"
`

interface Run {
  place: Place
  /** An empty cluster: the database page creates everything in it. */
  empty: Cluster
  substitutes: (text: string) => Promise<string>
}

async function scriptOf(page: string, blocks: Block[], substitutes: Run['substitutes']): Promise<string> {
  let script = `${shell}${before[page] ?? ''}\n`
  let read = ''
  for (const { line, text, mark, language } of blocks) {
    if (language !== 'sh' || !mark?.isRun) continue
    read += text
    for (const [name, bring] of Object.entries(brought))
      if (text.includes(`$${name}`) && !read.includes(`${name}=`)) script += `${bring}\n`
    script += `echo "-- line ${line}"\n${await substitutes(text)}\nfinished ${line} '${mark.fails.join(' ')}'\n`
  }
  return `${script}echo followed >&3\n`
}

async function follow(page: string, blocks: Block[], { place, empty, substitutes }: Run): Promise<void> {
  // Looks like a working copy, so the page's output is not written into the real one.
  const folder = path.join(place.folder, page.replaceAll('/', '-'))
  await mkdir(folder)
  for (const name of ['package.json', 'scripts', 'server', 'deploy'])
    await symlink(path.join(root, name), path.join(folder, name))
  const [script, said] = [path.join(folder, 'script'), path.join(folder, 'said')]
  await writeFile(script, await scriptOf(page, blocks, substitutes))
  const server = page === database ? empty.url : (place.settings['POSTERN_DATABASE_URL'] ?? '')
  const { hostname, port } = new URL(server)
  const own = {
    PROVE_ROOT: root,
    PROVE_PAGE: folder,
    PROVE_SAID: said,
    PROVE_DEV_FOLDER: place.devFolder,
  }
  const { stdout, stderr } = spawnSync('bash', [script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    timeout: 180_000,
    env: { ...process.env, ...place.settings, ...own, PGHOST: hostname, PGPORT: port, PGUSER: 'postgres' },
  })
  if (stdout === 'followed\n') return
  const tail = (await readFile(said, 'utf8')).split('\n').slice(-15)
  throw new Error(`${stdout}${stderr}${tail.map((line) => `\n    ${line.slice(0, 300)}`).join('')}`)
}

async function proveAll(pages: string[], run: Run): Promise<void> {
  const total = { run: 0, notRun: 0, failed: 0 }
  for (const page of pages) {
    const blocks = blocksOf(page)
    const runs = blocks.filter(({ mark }) => mark?.isRun).length
    const rest = blocks.length - runs
    total.notRun += rest
    if (runs === 0) continue
    const began = performance.now()
    try {
      await follow(page, blocks, run)
      if (page === webhooks)
        await tryReceivers(blocks, await readFile(path.join(root, page), 'utf8'), run.place.folder)
      total.run += runs
      say(`${page}: ${runs} run, ${rest} not, ${((performance.now() - began) / 1000).toFixed(1)} s`)
    } catch (error) {
      total.failed += runs
      say(`${page}: FAILED: ${(error as Error).message}`)
    }
  }
  say(`Blocks: ${total.run} run, ${total.notRun} not run, ${total.failed} on pages that failed.`)
  process.exitCode = total.failed === 0 ? 0 : 1
}

const wanted = new RegExp(process.argv[2] ?? '')
const pages = pagesWithBlocks()
  .filter((page) => page !== install && wanted.test(page))
  .sort((one, other) => Number(one === last) - Number(other === last))
const place = await openPlace()
const empty = await startCluster()
try {
  await proveAll(pages, { place, empty, substitutes: await inPlaceOf(place) })
} finally {
  await empty.stop()
  await place.close()
}
