import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { spread } from '../bench/figures.ts'
import type { Part, PartName, PartOptions } from '../bench/postern.ts'
import { buildServer, builtProgram, isServerStale } from '../scripts/server-build.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { type Daemon, startDaemon } from './failover/daemon.ts'
import { type FaultReport, prove, type Stage, say, seedOf } from './run.ts'

/**
 * `npm run prove:upgrade`: with two API processes behind nginx, two workers and an intake under load, the database is
 * migrated to the next release, and each process is replaced with one from that release. proofs/README.md lists the
 * criteria.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '6' },
    /** The npm package of a release, from which the first upgrade starts. */
    from: { type: 'string' },
    'pause-ms': { type: 'string', default: '60' },
  },
})
const rounds = Number(options.rounds)
const seed = seedOf(options.seed)
const betweenMs = 500
const readyMs = 30_000

/** One of the installation's processes, with its release. */
interface Place {
  name: PartName
  part: Part
  environment: Record<string, string>
  /** The URL of its API. */
  url?: string
}

const home = await mkdtemp(path.join(tmpdir(), 'postern-upgrade-'))
const [frontPort, secondPort] = [await steadyPort(), await steadyPort()]
const heldUp: number[] = []
let nginx: Daemon | undefined
try {
  if (isServerStale()) await buildServer()
  await prove({
    title: `${rounds} rolling upgrades`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
    program: await makeRelease(0),
    lay: async ({ httpPort }) => {
      nginx = await startNginx([httpPort, secondPort])
      return {}
    },
    url: () => `http://127.0.0.1:${frontPort}`,
    injectFaults: upgradeAgainAndAgain,
  })
} finally {
  await nginx?.end()
  await rm(home, { recursive: true, force: true })
}

/**
 * Creates copies of the built package, each with a higher version and one more migration than the previous copy. With
 * --from, the first release is the given package.
 */
async function makeRelease(number: number): Promise<string> {
  const release = path.join(home, `release-${number}`)
  if (number === 0 && options.from !== undefined) {
    await mkdir(release)
    const unpack = ['--extract', '--gzip', '--strip-components=1', '--file', options.from]
    await promisify(execFile)('tar', [...unpack, '--directory', release])
    return path.join(release, 'postern.js')
  }
  await cp(path.dirname(builtProgram), release, { recursive: true })
  const manifest = path.join(release, 'package.json')
  const content = JSON.parse(await readFile(manifest, 'utf8'))
  await writeFile(manifest, JSON.stringify({ ...content, version: `${content.version}-next.${number}` }))
  for (let step = 1; step <= number; step++) {
    await writeFile(
      path.join(release, 'migrations', `${900_000 + step}_next.sql`),
      `alter table mail.messages add column next_${step} text;\n` +
        `create index on control.projects (name, id) where id > ${step};\n`,
    )
  }
  return path.join(release, 'postern.js')
}

async function upgradeAgainAndAgain(stage: Stage): Promise<FaultReport> {
  const faults: string[] = []
  const places = await populate(stage)
  let last = ''
  for (let round = 1; round <= rounds; round++) {
    await sleep(betweenMs)
    const program = await makeRelease(round)
    const { status, stderr } = await stage.postern.call(['migrate'], { program })
    if (status !== 0) faults.push(`round ${round}: postern migrate: ${stderr}`)
    faults.push(...(await unready(places, `round ${round}, after the migration`)))
    for (const place of places) {
      await sleep(betweenMs)
      const stoppedAt = performance.now()
      await place.part.stop()
      place.part = await stage.start(place.name, { environment: place.environment, program })
      if (place.url) await untilReady(place.url)
      heldUp.push(performance.now() - stoppedAt)
    }
    faults.push(...(await unready(places, `round ${round}, after the upgrade`)))
    say(`upgraded to release ${round}`)
    last = program
  }
  await sleep(betweenMs)
  faults.push(...(await misses(stage)), ...(await stale(places, last)))
  return {
    lines: [
      `${rounds} releases, ${heldUp.length} processes replaced one after the other, each unavailable for ${spread(heldUp)} ms`,
    ],
    inFlight: [],
    faults,
  }
}

/** Starts a second API and a second worker in addition to the usual processes. */
async function populate({ parts, postern, start }: Stage): Promise<Place[]> {
  const more = { environment: { POSTERN_HTTP_PORT: String(secondPort) } } satisfies PartOptions
  const known = (name: PartName): Part => {
    const part = parts[name]
    if (!part) throw new Error(`no ${name} was started`)
    return part
  }
  const second = `http://127.0.0.1:${secondPort}`
  return [
    { name: 'api', part: known('api'), environment: {}, url: postern.url },
    { name: 'api', part: await start('api', more), ...more, url: second },
    { name: 'worker', part: known('worker'), environment: {} },
    { name: 'worker', part: await start('worker'), environment: {} },
    { name: 'intake', part: known('intake'), environment: {} },
  ]
}

/** A process from the previous release must stay ready with a newer database schema. */
async function unready(places: readonly Place[], when: string): Promise<string[]> {
  const apis = places.flatMap(({ url }) => url ?? [])
  const answers = await Promise.all(apis.map((url) => fetch(`${url}/readyz`)))
  return answers.filter(({ ok }) => !ok).map(({ status, url }) => `${when}: ${url} returns ${status}`)
}

async function untilReady(url: string): Promise<void> {
  for (const deadline = Date.now() + readyMs; Date.now() < deadline; await sleep(50)) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined)
    if (answer?.ok) return
  }
  throw new Error(`${url} did not become ready`)
}

/** Checks that every migration was applied. */
async function misses({ query }: Stage): Promise<string[]> {
  const rows = await query(`select from postern.migrations where name like '900%'`)
  return rows.length === rounds ? [] : [`${rows.length} of ${rounds} migrations were applied`]
}

/** Checks that all processes run the last release at the end. */
async function stale(places: readonly Place[], program: string): Promise<string[]> {
  const running = await Promise.all(
    places.map(async ({ name, part }) => ({
      name,
      command: await readFile(`/proc/${part.pid}/cmdline`, 'utf8').catch(() => 'is gone'),
    })),
  )
  return running.flatMap(({ name, command }) =>
    command.includes(program) ? [] : [`${name}: ${command.replaceAll('\0', ' ')}`],
  )
}

/** The configuration in docs/operations/upgrade.md. */
async function startNginx(ports: readonly number[]): Promise<Daemon> {
  const nginxHome = path.join(home, 'nginx')
  await mkdir(nginxHome)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const file = path.join(nginxHome, 'nginx.conf')
  await writeFile(
    file,
    `worker_processes 1;
daemon off;
user root;
pid ${nginxHome}/pid;
error_log ${nginxHome}/error.log;
events { worker_connections 256; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${nginxHome}/${name};`).join('\n  ')}
  upstream postern {
    ${ports.map((port) => `server 127.0.0.1:${port} max_fails=0;`).join('\n    ')}
    keepalive 16;
  }
  server {
    listen 127.0.0.1:${frontPort};
    client_max_body_size 64m;
    location / {
      proxy_pass http://postern;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_next_upstream error;
      proxy_connect_timeout 2s;
    }
  }
}
`,
  )
  return startDaemon('nginx', ['-p', nginxHome, '-c', file, '-e', path.join(nginxHome, 'error.log')], {
    cwd: nginxHome,
    log: path.join(nginxHome, 'log'),
  })
}
