import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { registry, watchProcess } from '../server/src/platform/telemetry/metrics.ts'

/**
 * The alert rules, held to everything that they speak of: Prometheus's own checker takes them, each fires and is silent in
 * a test when it must, every metric in them is one that the program shows, and each has its section in the docs.
 */
const folder = 'deploy/prometheus'
const page = 'docs/operations/alerts.md'

const problems: string[] = []
const read = (path: string): Promise<string> => readFile(new URL(`../${path}`, import.meta.url), 'utf8')

const [rules, tests, docs] = await Promise.all([
  read(`${folder}/alerts.yaml`),
  read(`${folder}/alerts.test.yaml`),
  read(page),
])

const alerts = [...rules.matchAll(/^\s*- alert: (\w+)$/gm)].map(([, name = '']) => name)
if (alerts.length < 10) problems.push(`only ${alerts.length} alerts were found`)

const sections = [...docs.matchAll(/^## (Postern\w+)$/gm)].map(([, name = '']) => name)
for (const alert of alerts) {
  for (const kind of ['fires', 'is silent']) {
    if (!tests.includes(`- name: ${alert} ${kind}\n`)) problems.push(`no test in which ${alert} ${kind}`)
  }
  if (!sections.includes(alert)) problems.push(`${page} has no section ${alert}`)
  if (!rules.includes(`runbook_url: ${page}#${alert.toLowerCase()}\n`))
    problems.push(`${alert} does not lead to its section of ${page}`)
}
for (const section of sections) {
  if (!alerts.includes(section)) problems.push(`${page} has a section ${section}, which is no alert`)
}

watchProcess('check')
const shown = new Set(
  (await registry.getMetricsAsJSON()).flatMap(({ name }) => [
    name,
    ...['_bucket', '_sum', '_count'].map((end) => name + end),
  ]),
)
const named = new Set(`${rules}\n${tests}`.match(/\b(?:postern|nodejs|process)_\w+/g))
if (named.size < 10) problems.push(`only ${named.size} metrics were found in the rules`)
for (const name of named) if (!shown.has(name)) problems.push(`no process shows ${name}`)

const tool = (...args: string[]): void => {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { encoding: 'utf8' })
  if (error) problems.push('promtool is not there; .ci/run tells how to get it from Debian')
  else if (status !== 0) problems.push(`promtool ${args.join(' ')}\n${stdout}${stderr}`)
}
tool('check', 'rules', `${folder}/alerts.yaml`)
tool('check', 'config', '--syntax-only', `${folder}/prometheus.yaml`)
tool('test', 'rules', `${folder}/alerts.test.yaml`)

process.stdout.write(`${alerts.length} alerts and ${named.size} metrics looked at.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
