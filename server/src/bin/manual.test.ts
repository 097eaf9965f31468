import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'
import { commonExits, exits, lineOf, type Manual, manual } from './manual.ts'

const page = await readFile(new URL('../../../docs/operations/command.md', import.meta.url), 'utf8')
const pages = Object.entries(manual as Record<string, Manual>)

describe('the manual', () => {
  test('postern --help lists every command and the common exit codes', async () => {
    const { status, stdout } = await callPostern(bareEnvironment, '--help')
    assert.equal(status, 0)
    for (const [name, { summary }] of pages)
      assert.ok(stdout.includes(`  ${name.padEnd(12)}${summary}\n`), name)
    for (const { code, about } of commonExits) {
      assert.ok(stdout.includes(`  ${code}  ${about}\n`))
      assert.ok(page.includes(`| ${code} | ${about} |\n`), `exit code ${code}`)
    }
  })

  test('every command has --help, which needs no configuration and matches the page', async () => {
    await Promise.all(
      pages.map(async ([name, { verbs }]) => {
        const { status, stdout, stderr } = await callPostern(bareEnvironment, name, '--help')
        assert.deepEqual({ status, stderr }, { status: 0, stderr: '' }, name)
        for (const [verb, form] of Object.entries(verbs)) {
          for (const text of [lineOf(name, verb, form), form.about]) {
            assert.ok(stdout.includes(text), text)
            assert.ok(page.includes(text), text)
          }
          for (const [option, { about }] of Object.entries(form.options)) {
            assert.ok(stdout.includes(about) && stdout.includes(`--${option}`), `${name} ${verb} --${option}`)
            assert.ok(page.includes(about) && page.includes(`\`--${option}`), `${name} ${verb} --${option}`)
          }
        }
      }),
    )
  })

  test("an exit code that only one verb has is listed only in its command's help", async () => {
    const own = `  ${exits.notProved.code}  Only \`audit verify\`: ${exits.notProved.about}\n`
    assert.ok((await callPostern(bareEnvironment, 'audit', '--help')).stdout.includes(own))
    for (const args of [['--help'], ['queue', '--help']])
      assert.ok(!(await callPostern(bareEnvironment, ...args)).stdout.includes(exits.notProved.about))
  })

  test('every command that prints a result has --json', () => {
    for (const [name, { verbs }] of pages) {
      const hasNoResult = ['all', 'api', 'worker', 'intake', 'signer', 'completion'].includes(name)
      for (const [verb, { options }] of Object.entries(verbs)) {
        assert.equal('json' in options, !hasNoResult, `${name} ${verb}`)
      }
    }
  })

  test('version prints text or JSON', async () => {
    const { stdout } = await callPostern(bareEnvironment, '--version')
    const { version } = JSON.parse((await callPostern(bareEnvironment, 'version', '--json')).stdout)
    assert.equal(stdout, `postern ${version}\n`)
  })
})
