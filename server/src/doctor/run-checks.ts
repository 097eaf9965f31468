import { type Check, type DoctorContext, type Finding, failure, messageOf } from './check.ts'

export interface CheckResult extends Finding {
  check: string
}

/** The time limit for a check. Each call that the check makes has a shorter limit. */
const checkMs = 30_000

/** Runs all checks in parallel. A check that fails or hangs does not affect the others. */
export async function runChecks(checks: readonly Check[], context: DoctorContext): Promise<CheckResult[]> {
  const findings = await Promise.all(checks.map((check) => resultOf(check, context)))
  return checks.flatMap(({ name }, index) =>
    (findings[index] ?? []).map((finding) => ({ check: name, ...finding })),
  )
}

async function resultOf({ needs, run }: Check, context: DoctorContext): Promise<Finding[]> {
  const missing = needs && context.missing[needs]
  if (missing) return [{ level: 'skipped', finding: `Skipped. ${missing.finding}`, remedy: null }]
  const late = Promise.withResolvers<Finding[]>()
  const timer = setTimeout(() => late.resolve([timedOut]), checkMs)
  try {
    return await Promise.race([run(context), late.promise])
  } catch (error) {
    return [
      failure(
        `The check failed unexpectedly: ${messageOf(error)}.`,
        'Run the check again. If the error persists, report it with the Postern version and this message.',
      ),
    ]
  } finally {
    clearTimeout(timer)
  }
}

const timedOut = failure(
  `The check did not finish within ${checkMs / 1000} seconds.`,
  'A service does not respond: see the other findings, then run the check again.',
)
