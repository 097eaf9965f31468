import { runParallel } from './run-parallel.ts'

/** `npm run check`: runs all static checks. All steps run, and any failure fails the command. */
const steps: [what: string, command: string, ...args: string[]][] = [
  ['format and lint', 'node_modules/.bin/biome', 'ci', '.'],
  ['types', 'node_modules/.bin/tsc', '--project', '.'],
  ['types of the console', 'node_modules/.bin/tsc', '--project', 'console'],
  ['types of /console', 'node_modules/.bin/tsc', '--project', 'console/src/admin'],
  ['types of /app', 'node_modules/.bin/tsc', '--project', 'console/src/app'],
  ['types of the site', 'node_modules/.bin/tsc', '--project', 'site'],
  ['boundaries', process.execPath, 'scripts/check-boundaries.ts'],
  ['type names', process.execPath, 'scripts/check-type-names.ts'],
  ['no wall clock', process.execPath, 'scripts/check-clock.ts'],
  ['dead code', 'node_modules/.bin/knip', '--no-progress'],
  ['packages', process.execPath, 'scripts/check-packages.ts'],
  ['generated files', process.execPath, 'scripts/generate.ts', '--check'],
  ['openapi', process.execPath, 'scripts/check-openapi.ts'],
  ['released API and migrations', process.execPath, 'scripts/check-released.ts'],
  ['documentation', process.execPath, 'scripts/check-docs.ts'],
  ['words', process.execPath, 'scripts/check-words.ts'],
  ['alerts', process.execPath, 'scripts/check-alerts.ts'],
  ['deploy', process.execPath, 'scripts/check-deploy.ts'],
  ['migrations', process.execPath, 'scripts/check-migrations.ts'],
]

const failed = await runParallel(
  steps.map(([title, command, ...args]) => ({ title, command, args })),
  { atOnce: 2, timeoutMs: 900_000 },
)
process.stdout.write(
  failed.length === 0
    ? '\nAll checks passed.\n'
    : `\nFailed: ${failed.map(({ title }) => title).join(', ')}\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1
