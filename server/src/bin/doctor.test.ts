import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checks } from '../doctor/checks.ts'
import type { CheckResult } from '../doctor/run-checks.ts'
import { brokenInCells } from '../testing/fixtures/broken-installations-cells.ts'
import { brokenOnHost } from '../testing/fixtures/broken-installations-host.ts'
import { brokenInMail } from '../testing/fixtures/broken-installations-mail.ts'
import { startInstallation } from '../testing/harness/installation.ts'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'
import { diagnose } from './doctor.ts'

/** A good installation, in which one thing after the other is made wrong. */
const installation = await startInstallation()
const { env } = installation
/** In this order: what is about rows counts on the project that was made on the way. */
const planted = [...brokenOnHost(installation), ...brokenInCells(installation), ...brokenInMail(installation)]

const everything: CheckResult[] = []

/** What one check finds, with another environment. */
async function look(check: string, changes: Record<string, string> = {}): Promise<CheckResult[]> {
  const wanted = checks.filter(({ name }) => name === check)
  const told = (await diagnose({ ...env, ...changes }, wanted)).filter((one) => one.check === check)
  everything.push(...told)
  return told
}

describe('postern doctor', () => {
  test('finds nothing but well in a good installation', async () => {
    const told = await diagnose(env)
    everything.push(...told)
    assert.deepEqual(
      told.filter(({ level }) => level !== 'ok'),
      [],
    )
    assert.deepEqual(
      new Set(told.map(({ check }) => check)),
      new Set(['configuration', ...checks.map(({ name }) => name)]),
    )
    const { status, stdout, stderr } = await callPostern(env, 'doctor')
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
    assert.match(stdout, /^Failures: 0, warnings: 0, as they should be: \d+, not looked at: 0\.\n$/)
  })

  for (const { what, check, plant, undo, env: changes = {}, level, finding, remedy } of planted) {
    test(`finds ${what}`, async () => {
      const matches = (told: CheckResult) => told.level === level && finding.test(told.finding)
      await plant?.()
      const told = await look(check, changes)
      const found = told.find(matches)
      assert.ok(found, JSON.stringify(told, null, 2))
      assert.match(found.remedy ?? '', remedy)
      await undo?.()
      if (undo) assert.ok(!(await look(check, changes)).some(matches), 'once it is put right it is not found')
    })
  }

  test('tells every mistake in the configuration, and what it could not look at', async () => {
    const { status, stdout } = await callPostern(
      { ...bareEnvironment, POSTERN_HTTP_PORT: 'x', POSTERN_HTTP_PROT: '1' },
      'doctor',
      '--json',
    )
    assert.equal(status, 1)
    const told: CheckResult[] = JSON.parse(stdout)
    const failures = told.filter(({ level }) => level === 'failure')
    assert.ok(failures.every(({ check, remedy }) => check === 'configuration' && remedy !== null))
    for (const mistake of [
      /POSTERN_DATABASE_URL is not set/,
      /POSTERN_HTTP_PORT must be/,
      /did you mean POSTERN_HTTP_PORT/,
    ]) {
      assert.ok(
        failures.some(({ finding }) => mistake.test(finding)),
        stdout,
      )
    }
    assert.equal(told.filter(({ level }) => level === 'skipped').length, checks.length)
  })

  test('looks at what needs no database when there is none, and says what it left out', async () => {
    const { status, stdout } = await callPostern(
      { ...env, POSTERN_DATABASE_URL: 'postgres://postern_app:swordfish@127.0.0.1:1/main' },
      'doctor',
      '--all',
    )
    assert.equal(status, 1)
    assert.match(stdout, /^FAILURE {2}database: .*cannot be used.*\n +Nothing answers at the address/m)
    assert.match(stdout, /^ok {7}mta: /m)
    assert.match(stdout, /^skipped {2}queue: Not looked at\. The database at /m)
    assert.ok(!stdout.includes('swordfish'))
  })

  test('tells no secret', () => {
    const text = JSON.stringify(everything)
    for (const secret of ['swordfish', '5a'.repeat(8), 'secret-of-the-doctor-test']) {
      assert.ok(!text.includes(secret), secret)
    }
  })
})
