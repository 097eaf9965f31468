import { type Check, type DoctorContext, type Finding, failure, messageOf } from './check.ts'

export interface CheckResult extends Finding {
  check: string
}

/** No check takes longer; each of its own calls has a shorter limit. */
const checkMs = 30_000

/** All at once: none waits for another, and none that fails or hangs keeps the others from being told. */
export async function runChecks(checks: readonly Check[], ground: DoctorContext): Promise<CheckResult[]> {
  const told = await Promise.all(checks.map((check) => lookOf(check, ground)))
  return checks.flatMap(({ name }, index) =>
    (told[index] ?? []).map((finding) => ({ check: name, ...finding })),
  )
}

async function lookOf({ needs, look }: Check, ground: DoctorContext): Promise<Finding[]> {
  const missing = needs && ground.missing[needs]
  if (missing) return [{ level: 'skipped', finding: `Not looked at. ${missing.finding}`, remedy: null }]
  const late = Promise.withResolvers<Finding[]>()
  const timer = setTimeout(() => late.resolve([hung]), checkMs)
  try {
    return await Promise.race([look(ground), late.promise])
  } catch (error) {
    return [
      failure(
        `This could not be looked at: ${messageOf(error)}.`,
        'Run it again; if it stays, tell us of it with the version of Postern and this sentence.',
      ),
    ]
  } finally {
    clearTimeout(timer)
  }
}

const hung = failure(
  `This could not be looked at within ${checkMs / 1000} seconds.`,
  'Something does not answer: look at what the other findings say of it, then run it again.',
)
