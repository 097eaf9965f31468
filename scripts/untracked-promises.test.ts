import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const folder = mkdtempSync(path.join(tmpdir(), 'postern-unwatched-'))
after(() => rmSync(folder, { recursive: true }))

/** Runs a file as the suite does. */
function run(body: string) {
  const file = path.join(folder, 'one.test.mjs')
  const preload = fileURLToPath(import.meta.resolve('./untracked-promises.ts'))
  writeFileSync(file, `import { test } from 'node:test'\nimport hooks from 'node:async_hooks'\n${body}`)
  // Removes the variables that mark the process as a child of a test runner.
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env
  const { status, stdout } = spawnSync(
    process.execPath,
    [`--import=${preload}`, '--test', '--test-reporter=spec', file],
    {
      encoding: 'utf8',
      env,
    },
  )
  return { status, stdout }
}

const quietTest = `test('good', async () => { await new Promise((resolve) => setTimeout(resolve, 50)) })\n`

describe('a test file', () => {
  test('passes', () => {
    const { status, stdout } = run(quietTest)
    assert.equal(status, 0, stdout)
  })

  for (const [what, stray] of [
    ['throws', `setTimeout(() => { throw new Error('a stray') }, 10)`],
    ['rejects', `void Promise.reject(new Error('a stray'))`],
  ] as const) {
    test(`fails if code that no test awaits ${what}, and reports the error`, () => {
      for (const body of [
        `${quietTest}${stray}`,
        `test('stray', async () => { ${stray}; await new Promise((resolve) => setTimeout(resolve, 50)) })`,
        `test('stray', () => { ${stray} })\n${quietTest}`,
      ]) {
        const { status, stdout } = run(body)
        assert.equal(status, 1, stdout)
        assert.match(stdout, /a stray/)
      }
    })
  }

  test('reports its tests in their suites', () => {
    const { stdout } = run(`import { before, describe } from 'node:test'
      let ready = 0
      before(() => ready++)
      describe('outer', () => {
        before(async () => void ready++)
        describe('inner', () => {
          before(() => ready++)
          test('has all before it', async () => { await null; if (ready !== 3) throw new Error(ready) })
        })
      })`)
    const lines = stdout.split('\n').filter((line) => /^ *[▶✔✖]/.test(line))
    assert.deepEqual(
      lines.map((line) => line.replace(/ \(.*/, '')),
      ['▶ outer', '  ▶ inner', '    ✔ has all before it', '  ✔ inner', '✔ outer'],
    )
  })

  test('can track promises itself', () => {
    const { status, stdout } = run(`test('own', async () => {
      let seen = 0
      hooks.createHook({ init: () => void seen++ }).enable()
      await Promise.resolve()
      if (seen === 0) throw new Error('nothing was seen')
    })`)
    assert.equal(status, 0, stdout)
  })
})
