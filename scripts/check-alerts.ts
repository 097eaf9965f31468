import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
// Loads every module that registers a metric.
import '../server/src/bin/all.ts'
import { registry, watchProcess } from '../server/src/platform/telemetry/metrics.ts'

/**
 * Checks the alert rules: promtool accepts them, every rule has one test in which it fires and one in which it does
 * not, the program exports every metric that the rules use, and every rule has a section in the docs.
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
    problems.push(`the runbook_url of ${alert} is not its section of ${page}`)
}
for (const section of sections) {
  if (!alerts.includes(section))
    problems.push(`${page} has a section ${section}, but that alert does not exist`)
}

watchProcess('check')
const exported = new Set(
  (await registry.getMetricsAsJSON()).flatMap(({ name }) => [
    name,
    ...['_bucket', '_sum', '_count'].map((end) => name + end),
  ]),
)
const named = new Set(`${rules}\n${tests}`.match(/\b(?:postern|nodejs|process)_\w+/g))
if (named.size < 10) problems.push(`only ${named.size} metrics were found in the rules`)
for (const name of named) if (!exported.has(name)) problems.push(`no process exports ${name}`)

const tool = (...args: string[]): void => {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { encoding: 'utf8' })
  if (error) problems.push('promtool is not installed; .ci/run shows how to install it from Debian')
  else if (status !== 0) problems.push(`promtool ${args.join(' ')}\n${stdout}${stderr}`)
}
tool('check', 'rules', `${folder}/alerts.yaml`)
tool('check', 'config', '--syntax-only', `${folder}/prometheus.yaml`)
tool('test', 'rules', `${folder}/alerts.test.yaml`)

process.stdout.write(`${alerts.length} alerts and ${named.size} metrics checked.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
