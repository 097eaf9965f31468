import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'
import { exits, lineOf, type Manual, manual } from './manual.ts'

const page = await readFile(new URL('../../../docs/operations/command.md', import.meta.url), 'utf8')
const pages = Object.entries(manual as Record<string, Manual>)

describe('the manual', () => {
  test('postern --help lists every command and every exit code', async () => {
    const { status, stdout } = await callPostern(bareEnvironment, '--help')
    assert.equal(status, 0)
    for (const [name, { summary }] of pages)
      assert.ok(stdout.includes(`  ${name.padEnd(10)}${summary}\n`), name)
    for (const { code, about } of Object.values(exits)) {
      assert.ok(stdout.includes(`  ${code}  ${about}\n`))
      assert.ok(page.includes(`| ${code} | ${about} |\n`), `exit code ${code}`)
    }
  })

  test('every command answers --help, without a configuration, with what the page says of it', async () => {
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

  test('everything that prints something can print it as JSON', () => {
    for (const [name, { verbs }] of pages) {
      const goesOn = ['all', 'api', 'worker', 'intake', 'signer'].includes(name)
      for (const [verb, { options }] of Object.entries(verbs)) {
        assert.equal('json' in options, !goesOn, `${name} ${verb}`)
      }
    }
  })

  test('version says it for people and for programs', async () => {
    const { stdout } = await callPostern(bareEnvironment, '--version')
    const { version } = JSON.parse((await callPostern(bareEnvironment, 'version', '--json')).stdout)
    assert.equal(stdout, `postern ${version}\n`)
  })
})
