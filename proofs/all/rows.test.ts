import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { rows } from './rows.ts'

const root = path.resolve(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')

describe('the rows of prove:all', () => {
  test('are the rows documented in the READMEs, with the same commands', () => {
    const documented = ['bench/README.md', 'proofs/README.md'].flatMap((page) =>
      read(page)
        .split('\n')
        .flatMap((line) => {
          const [, id, , ...cells] = line.split('|').map((cell) => cell.trim())
          if (!/^[SRX]\d+$/.test(id ?? '')) return []
          return [`${id} ${cells.at(-2)?.replaceAll('`', '').replaceAll('npm test', 'test')}`]
        }),
    )
    assert.deepEqual(
      rows.map(
        ({ id, commands }) => `${id} ${commands.map(({ script }) => script).join(', ') || 'no script'}`,
      ),
      documented,
    )
  })

  test('run existing scripts and test files', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    for (const { script, args } of rows.flatMap(({ commands }) => commands)) {
      assert.ok(scripts[script], script)
      for (const file of args.filter((arg) => arg.endsWith('.test.ts')))
        assert.ok(existsSync(path.join(root, file)), file)
    }
  })
})
