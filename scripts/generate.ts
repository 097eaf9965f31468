import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
// Loads every module that registers a metric.
import '../server/src/bin/all.ts'
import { loadConfig } from '../server/src/config/config.ts'
import { settings } from '../server/src/config/table.ts'
import { createContext } from '../server/src/context/context.ts'
import { createApi } from '../server/src/http/api.ts'
import { openapiText } from '../server/src/http/openapi.ts'
import type { SettingsTable } from '../server/src/platform/settings.ts'
import { createLogger } from '../server/src/platform/telemetry/log.ts'
import { registry } from '../server/src/platform/telemetry/metrics.ts'
import { makeTemplate } from '../server/src/testing/harness/database.ts'
import { startCluster } from '../server/src/testing/peers/postgres.ts'
import { commandPage } from './command-page.ts'
import { adminClient, appClient, sharedClient } from './console-client.ts'

/** Writes every generated file in the repository. With --check, writes nothing and fails if a file is stale. */
const generated: Record<string, () => Promise<string>> = {
  'server/src/platform/db/schema.gen.ts': databaseTypes,
  'docs/operations/configuration.md': async () => configurationPage(settings),
  'docs/operations/metrics.md': metricsPage,
  'docs/operations/command.md': async () => commandPage(),
  'openapi/postern.v1.json': openapi,
  'console/src/api/operations.gen.ts': async () => sharedClient(JSON.parse(await openapi())),
  'console/src/admin/operations.gen.ts': async () => adminClient(JSON.parse(await openapi())),
  'console/src/app/operations.gen.ts': async () => appClient(JSON.parse(await openapi())),
}

const root = new URL('../', import.meta.url)
const checking = process.argv.includes('--check')
const stale: string[] = []

for (const [path, make] of Object.entries(generated)) {
  const file = new URL(path, root)
  const fresh = await make()
  const present = await readFile(file, 'utf8').catch(() => '')
  if (fresh === present) continue
  stale.push(path)
  if (!checking) await writeFile(file, fresh)
}

if (checking && stale.length > 0) {
  process.stderr.write(`Stale generated files (run \`npm run generate\`): ${stale.join(', ')}\n`)
  process.exitCode = 1
} else {
  process.stdout.write(
    checking ? 'Generated files are fresh.\n' : `Written: ${stale.join(', ') || 'nothing new'}\n`,
  )
}

/** The table types, read from a migrated database. */
async function databaseTypes(): Promise<string> {
  const cluster = await startCluster()
  try {
    const url = await makeTemplate(cluster.url)
    // Matches the parsers in server/src/platform/db/pg-types.ts.
    const mapping = { int8: 'number', numeric: 'number', xid8: 'string', inet: 'string', cidr: 'string' }
    const { stdout } = await promisify(execFile)('node_modules/.bin/kysely-codegen', [
      ...['--dialect', 'postgres', '--url', url, '--print', '--log-level', 'error'],
      ...['--include-pattern', '(control|mail|postern).*', '--default-schema', 'none'],
      ...['--date-parser', 'string', '--type-mapping', JSON.stringify(mapping)],
    ])
    return stdout
  } finally {
    await cluster.stop()
  }
}

/** The document as served by the API. Serving it requires no queries, so the database does not have to exist. */
async function openapi(): Promise<string> {
  const config = loadConfig({
    POSTERN_DATABASE_URL: 'postgres://nobody@localhost/unused',
    POSTERN_PUBLIC_URL: 'http://localhost:8080',
    POSTERN_AUTH_SECRETS: `1:${'unused'.repeat(8)}`,
    POSTERN_MASTER_KEYS: `1:${'00'.repeat(32)}`,
  })
  const context = createContext(config, createLogger('error'), 'postern generate')
  const { app } = createApi(context)
  try {
    await app.ready()
    return openapiText(app)
  } finally {
    await app.close()
    await context.close()
  }
}

async function metricsPage(): Promise<string> {
  const metrics = (await registry.getMetricsAsJSON()).sort((one, other) => (one.name < other.name ? -1 : 1))
  const rows = metrics.map(({ name, help, type, values }) => {
    const { labelNames } = registry.getSingleMetric(name) as unknown as { labelNames: string[] }
    const labels = labelNames.map((label) => labelText(label, values as readonly Labelled[]))
    return `| \`${name}\` | ${type} | ${labels.join('; ')} | ${help} |`
  })
  return `${await readFile(new URL('metrics-head.md', import.meta.url), 'utf8')}
| metric | type | labels | meaning |
|---|---|---|---|
${rows.join('\n')}
`
}

interface Labelled {
  labels: Record<string, string | undefined>
}

function labelText(label: string, values: readonly Labelled[]): string {
  const known = new Set(values.flatMap(({ labels }) => labels[label] ?? []))
  if (known.size === 0) return `\`${label}\``
  return known.size > 8 ? `\`${label}\` (${known.size} values)` : `\`${label}\`: ${[...known].join(', ')}`
}

function configurationPage(table: SettingsTable): string {
  const rows = Object.values(table).map(({ name, about, default: value, secret }) => {
    const otherwise = value === undefined ? '**required**' : value === '' ? 'empty' : `\`${value}\``
    return `| \`${name}\`${secret ? ' or `…_FILE`' : ''} | ${otherwise} | ${about.replaceAll('|', '\\|')} |`
  })
  return `# Configuration

<!-- Generated from server/src/config/table.ts by \`npm run generate\`. -->

Postern is configured with environment variables. \`postern --settings <file> …\` reads variables that are not set from a
file with lines of the form \`NAME=value\`. Every \`postern\` command reads the same settings, validates all of them and
reports all errors together. An unknown variable that begins with \`POSTERN_\` is an error.

A secret can also be read from a file: append \`_FILE\` to the name of the variable and set it to the path of the file.
Whitespace around the content of the file is ignored.

| variable | default | meaning |
|---|---|---|
${rows.join('\n')}
`
}
