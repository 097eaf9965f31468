import { type Config, loadConfig } from '../config/config.ts'
import { createContext } from '../context/context.ts'
import { failure, ok } from '../doctor/check.ts'
import { checks } from '../doctor/checks.ts'
import { openDoctorContext } from '../doctor/context.ts'
import { type CheckResult, runChecks } from '../doctor/run-checks.ts'
import { type Environment, UnusableSettings } from '../platform/settings.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { command, endWith, print } from './command.ts'
import { remedyOf } from './error-hints.ts'

export const doctor = command('doctor', {
  async ''({ json, all }) {
    const told = await diagnose(process.env)
    print(json, told, () => textOf(told, all))
    if (told.some(({ level }) => level === 'failure')) endWith('failed')
  },
})

/** The configuration first: what it says is what all other checks look at. */
export async function diagnose(env: Environment, wanted = checks): Promise<CheckResult[]> {
  try {
    const settings = loadConfig(env)
    const told = ok('Every setting can be read.')
    return [{ check: 'configuration', ...told }, ...(await examineAll(settings, wanted))]
  } catch (error) {
    if (!(error instanceof UnusableSettings)) throw error
    return [
      ...error.problems.map((problem) => ({ check: 'configuration', ...settingFault(problem) })),
      ...wanted.map(({ name }) => ({
        check: name,
        level: 'skipped' as const,
        finding: 'Not looked at. The configuration is not usable.',
        remedy: null,
      })),
    ]
  }
}

const settingFault = (problem: string) =>
  failure(
    `${problem.replace(/\.$/, '')}.`,
    'Correct it in the environment of every Postern process; docs/operations/configuration.md lists every setting.',
  )

async function examineAll(settings: Config, wanted: typeof checks): Promise<CheckResult[]> {
  // What fails is told by the checks.
  const context = createContext(settings, createLogger('silent'), 'postern doctor')
  const { dns, auth, db, copies } = context
  const { ground, close } = await openDoctorContext({
    settings,
    dns,
    auth,
    db: db.admin,
    cells: [...copies.keys()],
    identity: db.identity,
    remedyOf,
  })
  try {
    return await runChecks(wanted, ground)
  } finally {
    await close()
    await context.close()
  }
}

const marks = { ok: 'ok     ', warning: 'WARNING', failure: 'FAILURE', skipped: 'skipped' }

function textOf(told: readonly CheckResult[], all: boolean): string {
  const count = (wanted: CheckResult['level']) => told.filter(({ level }) => level === wanted).length
  const shown = told.filter(({ level }) => all || level === 'failure' || level === 'warning')
  const lines = shown.map(
    ({ level, check, finding, remedy }) =>
      `${marks[level]}  ${check}: ${finding}${remedy === null ? '' : `\n         ${remedy}`}`,
  )
  const sum = `Failures: ${count('failure')}, warnings: ${count('warning')}, as they should be: ${count('ok')}, not looked at: ${count('skipped')}.`
  return [...lines, ...(lines.length > 0 ? [''] : []), sum].join('\n')
}
