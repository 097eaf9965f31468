import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const folder = mkdtempSync(path.join(tmpdir(), 'postern-unwatched-'))
after(() => rmSync(folder, { recursive: true }))

/** As the suite runs a file. */
function run(body: string) {
  const file = path.join(folder, 'one.test.mjs')
  const preload = fileURLToPath(import.meta.resolve('./untracked-promises.ts'))
  writeFileSync(file, `import { test } from 'node:test'\nimport hooks from 'node:async_hooks'\n${body}`)
  // Without what tells it that it is started by a test, and to whom to report.
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

describe('a file of tests', () => {
  test('passes', () => {
    const { status, stdout } = run(quietTest)
    assert.equal(status, 0, stdout)
  })

  for (const [what, stray] of [
    ['throws', `setTimeout(() => { throw new Error('a stray') }, 10)`],
    ['rejects', `void Promise.reject(new Error('a stray'))`],
  ] as const) {
    test(`fails where something ${what} that nobody waits for, and is told what`, () => {
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

  test('has its tests where they were written', () => {
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

  test('is not kept from watching promises itself', () => {
    const { status, stdout } = run(`test('own', async () => {
      let seen = 0
      hooks.createHook({ init: () => void seen++ }).enable()
      await Promise.resolve()
      if (seen === 0) throw new Error('nothing was seen')
    })`)
    assert.equal(status, 0, stdout)
  })
})
