/**
 * `postern doctor`: runs every check in doctor/checks.ts and prints the problems with their remedies. It loads the
 * configuration first, because every other check depends on it.
 */
import { styleText } from 'node:util'
import { type Config, loadConfig } from '../config/config.ts'
import { createContext } from '../context/context.ts'
import { failure, type Level, ok } from '../doctor/check.ts'
import { checks } from '../doctor/checks.ts'
import { openDoctorContext } from '../doctor/context.ts'
import { type CheckResult, runChecks } from '../doctor/run-checks.ts'
import { type Environment, UnusableSettings } from '../platform/settings.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { command, endWith, print } from './command.ts'
import { remedyOf } from './error-hints.ts'

export const doctor = command('doctor', {
  async ''({ json, verbose }) {
    const results = await diagnose(process.env)
    print(json, results, () => textOf(results, verbose))
    if (results.some(({ level }) => level === 'failure')) endWith('failed')
  },
})

export async function diagnose(env: Environment, wanted = checks): Promise<CheckResult[]> {
  try {
    const settings = loadConfig(env)
    return [{ check: 'configuration', ...ok('Every setting is valid.') }, ...(await runAll(settings, wanted))]
  } catch (error) {
    if (!(error instanceof UnusableSettings)) throw error
    return [
      ...error.problems.map((problem) => ({ check: 'configuration', ...settingFailure(problem) })),
      ...wanted.map(({ name }) => ({
        check: name,
        level: 'skipped' as const,
        finding: 'Skipped: the configuration is not usable.',
        remedy: null,
      })),
    ]
  }
}

const settingFailure = (problem: string) =>
  failure(
    `${problem.replace(/\.$/, '')}.`,
    'Correct it in the environment of every Postern process; docs/operations/configuration.md lists every setting.',
  )

async function runAll(settings: Config, wanted: typeof checks): Promise<CheckResult[]> {
  // Errors are reported by the checks, not logged.
  const context = createContext(settings, createLogger('silent'), 'postern doctor')
  const { dns, auth, db, replicas } = context
  const opened = await openDoctorContext({
    settings,
    dns,
    auth,
    db: db.admin,
    cells: [...replicas.keys()],
    identity: db.identity,
    remedyOf,
  })
  try {
    return await runChecks(wanted, opened.context)
  } finally {
    await opened.close()
    await context.close()
  }
}

const labels: Record<Level, { label: string; style: Parameters<typeof styleText>[0] }> = {
  ok: { label: 'ok     ', style: 'green' },
  warning: { label: 'WARNING', style: 'yellow' },
  failure: { label: 'FAILURE', style: ['bold', 'red'] },
  skipped: { label: 'skipped', style: 'dim' },
}
const indent = ' '.repeat(9)
/** How many findings in a group are listed without --verbose. */
const listedAtMost = 3

export function textOf(results: readonly CheckResult[], isVerbose: boolean): string {
  const count = (wanted: Level) => results.filter(({ level }) => level === wanted).length
  const shown = results.filter(({ level }) => isVerbose || level === 'failure' || level === 'warning')
  // Findings from one check that have the same remedy count as one problem.
  const groups = Object.values(
    Object.groupBy(shown, ({ check, level, remedy }) => JSON.stringify([check, level, remedy])),
  )
  const lines = groups.map((group = []) => groupText(group, isVerbose ? group.length : listedAtMost))
  const sum = `Failures: ${count('failure')}, warnings: ${count('warning')}, passed: ${count('ok')}, skipped: ${count('skipped')}.`
  return [...lines, ...(lines.length > 0 ? [''] : []), sum].join('\n')
}

function groupText(group: readonly CheckResult[], atMost: number): string {
  const [first] = group
  if (!first) return ''
  const { label, style } = labels[first.level]
  // styleText colours the output only on a terminal, and respects NO_COLOR.
  const head = `${styleText(style, label, { stream: process.stdout })}  ${first.check}`
  const remedy = first.remedy === null ? [] : [`${indent}${first.remedy}`]
  if (group.length === 1) return [`${head}: ${first.finding}`, ...remedy].join('\n')
  const hidden = group.length - atMost
  return [
    `${head}: ${group.length} findings`,
    ...group.slice(0, atMost).map(({ finding }) => `${indent}- ${finding}`),
    ...(hidden > 0 ? [`${indent}- and ${hidden} more; --verbose lists them`] : []),
    ...remedy,
  ].join('\n')
}
