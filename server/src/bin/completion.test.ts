import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'
import { bashCompletion, zshCompletion } from './completion.ts'
import { type Manual, manual } from './manual.ts'

/** The words that bash offers for the last word of a command line. */
function completed(...words: string[]): string[] {
  const script = `${bashCompletion()}
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_postern
printf '%s\\n' "\${COMPREPLY[@]}"`
  const shown = execFileSync('bash', ['-c', script, 'bash', 'postern', ...words], { encoding: 'utf8' })
  return shown.split('\n').filter((line) => line !== '')
}

describe('postern completion', () => {
  test('bash completes commands, verbs and options', () => {
    assert.deepEqual(completed('que'), ['queue'])
    assert.deepEqual(completed('--settings', 'postern.env', 'que'), ['queue'])
    assert.deepEqual(completed('queue', ''), ['show', 'hold', 'release', '--help'])
    assert.deepEqual(completed('queue', 'hold', '--p'), ['--project', '--provider'])
    assert.deepEqual(completed('doctor', '--'), ['--verbose', '--json', '--help'])
    assert.deepEqual(completed('doctor', '--json', '--v'), ['--verbose'])
    assert.deepEqual(completed('nothing', ''), [])
  })

  test('bash completes paths for options that take a file, and nothing for other values', () => {
    assert.deepEqual(completed('audit', 'verify', '--file', import.meta.filename), [import.meta.filename])
    assert.deepEqual(completed('queue', 'hold', '--reason', ''), [])
  })

  test('both scripts name every command, verb and option', () => {
    for (const script of [bashCompletion(), zshCompletion()]) {
      for (const [name, { verbs }] of Object.entries(manual as Record<string, Manual>)) {
        for (const [verb, { options }] of Object.entries(verbs)) {
          assert.ok(
            verb === '' ? script.includes(name) : script.includes(`'${name} ${verb}'`),
            `${name} ${verb}`,
          )
          for (const option of Object.keys(options)) assert.ok(script.includes(`--${option}`), option)
        }
      }
    }
  })

  test('the command prints the script', async () => {
    const { status, stdout } = await callPostern(bareEnvironment, 'completion', 'bash')
    assert.deepEqual({ status, stdout }, { status: 0, stdout: `${bashCompletion()}\n` })
    assert.match((await callPostern(bareEnvironment, 'completion', 'zsh')).stdout, /^#compdef postern\n/)
    assert.match((await callPostern(bareEnvironment, 'completion', 'bsh')).stderr, /Did you mean "bash"\?/)
  })
})
