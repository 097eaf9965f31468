import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { checks } from '../doctor/checks.ts'
import type { CheckResult } from '../doctor/run-checks.ts'
import { brokenInCells } from '../testing/fixtures/broken-installations-cells.ts'
import { brokenOnHost } from '../testing/fixtures/broken-installations-host.ts'
import { brokenInMail } from '../testing/fixtures/broken-installations-mail.ts'
import { startInstallation } from '../testing/harness/installation.ts'
import { bareEnvironment, callPostern, program } from '../testing/harness/postern-process.ts'
import { diagnose, textOf } from './doctor.ts'

/** A working installation. Faults are introduced one at a time. */
const installation = await startInstallation()
const { env } = installation
/** The order matters: the queue faults need the project that an earlier fault creates. */
const planted = [...brokenOnHost(installation), ...brokenInCells(installation), ...brokenInMail(installation)]

const allResults: CheckResult[] = []

/** The results of one check with a changed environment. */
async function run(check: string, changes: Record<string, string> = {}): Promise<CheckResult[]> {
  const wanted = checks.filter(({ name }) => name === check)
  const results = (await diagnose({ ...env, ...changes }, wanted)).filter((one) => one.check === check)
  allResults.push(...results)
  return results
}

describe('postern doctor', () => {
  test('reports no problems in a working installation', async () => {
    const results = await diagnose(env)
    allResults.push(...results)
    assert.deepEqual(
      results.filter(({ level }) => level !== 'ok'),
      [],
    )
    assert.deepEqual(
      new Set(results.map(({ check }) => check)),
      new Set(['configuration', ...checks.map(({ name }) => name)]),
    )
    const { status, stdout, stderr } = await callPostern(env, 'doctor')
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
    assert.match(stdout, /^Failures: 0, warnings: 0, passed: \d+, skipped: 0\.\n$/)
  })

  for (const { what, check, plant, undo, env: changes = {}, level, finding, remedy } of planted) {
    test(`finds ${what}`, async () => {
      const matches = (result: CheckResult) => result.level === level && finding.test(result.finding)
      await plant?.()
      const results = await run(check, changes)
      const found = results.find(matches)
      assert.ok(found, JSON.stringify(results, null, 2))
      assert.match(found.remedy ?? '', remedy)
      await undo?.()
      if (undo) assert.ok(!(await run(check, changes)).some(matches), 'it is not reported once it is fixed')
    })
  }

  test('accepts an MTA without DSN if KumoMTA posts its log records', async () => {
    const { env: changes } = planted.find(({ what }) => what === 'an MTA without DSN') ?? assert.fail()
    const results = await run('mta', { ...changes, POSTERN_KUMOMTA_TOKENS: 'kumomta-token-'.repeat(3) })
    assert.deepEqual(
      results.map(({ level }) => level),
      ['ok'],
    )
  })

  test('reports every mistake in the configuration, and skips the other checks', async () => {
    const { status, stdout } = await callPostern(
      { ...bareEnvironment, POSTERN_HTTP_PORT: 'x', POSTERN_HTTP_PROT: '1' },
      'doctor',
      '--json',
    )
    assert.equal(status, 1)
    const results: CheckResult[] = JSON.parse(stdout)
    const failures = results.filter(({ level }) => level === 'failure')
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
    assert.equal(results.filter(({ level }) => level === 'skipped').length, checks.length)
  })

  test('runs the checks that need no database if there is none, and skips the others', async () => {
    const { status, stdout } = await callPostern(
      { ...env, POSTERN_DATABASE_URL: 'postgres://postern_app:swordfish@127.0.0.1:1/main' },
      'doctor',
      '--verbose',
    )
    assert.equal(status, 1)
    assert.match(stdout, /^FAILURE {2}database: .*cannot be used.*\n +Connection to the database refused/m)
    assert.match(stdout, /^ok {7}mta: /m)
    assert.match(stdout, /^skipped {2}queue: Skipped\. The database at /m)
    assert.ok(!stdout.includes('swordfish'))
  })

  test('lists findings with the same remedy once, with a few examples, and all of them with --verbose', () => {
    const warning = (check: string, no: number): CheckResult => ({
      ...{ check, level: 'warning', finding: `Domain ${no} is wrong.`, remedy: 'Correct it.' },
    })
    const results = [
      ...Array.from({ length: 5 }, (_none, no) => warning('domains', no + 1)),
      warning('ports', 1),
      { check: 'mta', level: 'ok' as const, finding: 'It works.', remedy: null },
    ]
    assert.equal(
      textOf(results, false),
      `WARNING  domains: 5 findings
         - Domain 1 is wrong.
         - Domain 2 is wrong.
         - Domain 3 is wrong.
         - and 2 more; --verbose lists them
         Correct it.
WARNING  ports: Domain 1 is wrong.
         Correct it.

Failures: 0, warnings: 6, passed: 1, skipped: 0.`,
    )
    const verbose = textOf(results, true)
    assert.match(verbose, /- Domain 5 is wrong\.\n {9}Correct it/)
    assert.match(verbose, /^ok {7}mta: It works\.$/m)
  })

  test('uses colours on a terminal, unless NO_COLOR is set', () => {
    const atTerminal = (environment: Record<string, string>) =>
      spawnSync(
        'script',
        ['--quiet', '--command', [process.execPath, program, 'doctor'].join(' '), '/dev/null'],
        { env: { ...bareEnvironment, SHELL: '/bin/sh', TERM: 'xterm', ...environment }, encoding: 'utf8' },
      ).stdout
    assert.ok(atTerminal({}).includes('\u001b[31mFAILURE'))
    assert.match(atTerminal({ NO_COLOR: '1' }), /^FAILURE {2}configuration/m)
  })

  test('prints no secret', () => {
    const text = JSON.stringify(allResults)
    for (const secret of ['swordfish', '5a'.repeat(8), 'secret-of-the-doctor-test']) {
      assert.ok(!text.includes(secret), secret)
    }
  })
})
