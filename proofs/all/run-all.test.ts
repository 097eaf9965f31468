import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Command, Row } from './rows.ts'
import { type AllOptions, listRows, runAll } from './run-all.ts'

const exec = promisify(execFile)

const printing = (result: object): string => `process.stdout.write('result: ${JSON.stringify(result)}\\n')`

/** Each program adds its name to the file `calls`. */
const programs: Record<string, string> = {
  good: printing({ verdict: 'reached', figures: '1.4 | 1.3' }),
  slow: `${printing({ verdict: 'missed', figures: 'ratio 0.4' })}; process.exitCode = 1`,
  bad: `${printing({ verdict: 'failed', figures: 'lost 1' })}; process.exitCode = 1`,
  crash: `throw new Error('no such table')`,
  silent: '',
  liar: `${printing({ verdict: 'reached', figures: 'fine' })}; process.exitCode = 3`,
  several: [
    printing({ row: 'S1', verdict: 'reached', figures: 'first' }),
    printing({ row: 'S2', verdict: 'failed', figures: 'second' }),
    printing({ row: 'S1', verdict: 'missed', figures: 'third' }),
  ].join(';'),
  seeds: `process.stdout.write('result: ' + JSON.stringify({ verdict: 'reached', figures: process.argv.slice(2).join(' ') + ' ' + process.env.POSTERN_TEST_SEED }) + '\\n')`,
  edits: `require('node:fs').writeFileSync('code.ts', 'changed'); ${printing({ verdict: 'reached', figures: 'ok' })}`,
}

const command = (script: string, changes: Partial<Command> = {}): Command => ({
  ...{ script, args: [], environment: {}, seed: 'none' },
  ...changes,
})
const row = (id: string, ...scripts: string[]): Row => ({
  id,
  title: `Row ${id}`,
  commands: scripts.map((script) => command(script)),
})

let root = ''
const said: string[] = []

const options = (rows: Row[], changes: Partial<AllOptions> = {}): AllOptions => ({
  ...{ root, rows, seed: 7, stopping: new AbortController().signal, say: (text) => void said.push(text) },
  ...changes,
})
const git = (...args: string[]) =>
  exec('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], { cwd: root })
const commit = async (file: string, text: string): Promise<void> => {
  await writeFile(path.join(root, file), text)
  await git('add', '.')
  await git('commit', '-q', '-m', `Change ${file}`)
}
const page = () => readFile(path.join(root, 'bench/RESULTS.md'), 'utf8')
const calls = async (): Promise<string> => {
  const file = path.join(root, '.prove/calls')
  return existsSync(file) ? (await readFile(file, 'utf8')).trim() : ''
}

const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'postern-rows-'))
  folders.push(root)
  said.length = 0
  await mkdir(path.join(root, 'bench'))
  await mkdir(path.join(root, '.prove'))
  for (const [name, text] of Object.entries(programs)) {
    const call = `require('node:fs').appendFileSync('.prove/calls', '${name} ')`
    await writeFile(path.join(root, `${name}.cjs`), `${call}\n${text}\n`)
  }
  const scripts = Object.fromEntries(Object.keys(programs).map((name) => [name, `node ${name}.cjs`]))
  await writeFile(path.join(root, 'package.json'), JSON.stringify({ scripts }))
  await writeFile(path.join(root, '.gitignore'), '.prove/\n')
  await writeFile(path.join(root, 'bench/RESULTS.md'), '# Results\n\nIntroduction.\n\n## Other\n\nText.\n')
  await git('init', '-q')
  await commit('code.ts', 'one')
})

describe('prove:all', () => {
  test('runs every row although some fail, and takes the verdict that each printed', async () => {
    const rows = [
      ...[row('S1', 'good'), row('S2', 'slow'), row('R1', 'bad'), row('R2', 'crash')],
      ...[row('R3', 'silent'), row('X1', 'liar'), row('X2', 'good', 'slow')],
    ]
    const results = await runAll(options(rows))
    assert.deepEqual(
      results.map(({ id, verdict }) => `${id} ${verdict}`),
      ['S1 reached', 'S2 missed', 'R1 failed', 'R2 failed', 'R3 failed', 'X1 failed', 'X2 missed'],
    )
    assert.match(results[3]?.figures ?? '', /no result, exit code 1/)
    assert.match(results[5]?.figures ?? '', /exit code 3/)
  })

  test('takes only the results of its row from a command that measures several', async () => {
    const [result] = await runAll(options([row('S1', 'several')]))
    assert.deepEqual([result?.verdict, result?.figures], ['missed', 'first; third'])
  })

  test('passes the seed as an option or in the environment', async () => {
    const rows = [
      { ...row('R1'), commands: [command('seeds', { args: ['--kills', '2'], seed: 'option' })] },
      { ...row('R2'), commands: [command('seeds', { seed: 'environment' })] },
      row('R3', 'good'),
    ]
    const [option, environment, none] = await runAll(options(rows))
    assert.match(option?.figures ?? '', /^--kills 2 --seed 7 /)
    assert.equal(environment?.figures, ' 7')
    assert.deepEqual([option?.seed, environment?.seed, none?.seed], [7, 7, null])
  })

  test('continues with the remaining rows, and repeats none on the same commit', async () => {
    const rows = [row('S1', 'good'), row('R1', 'bad')]
    await runAll(options(rows, { only: ['S1'] }))
    assert.equal(await calls(), 'good')
    // A commit of the results, and of the pages that explain them, is the same code.
    await commit('bench/RESULTS.md', `${await page()}More.\n`)
    await commit('scale.md', 'Figures.\n')
    const results = await runAll(options(rows))
    assert.equal(await calls(), 'good bad')
    assert.deepEqual(
      results.map(({ verdict }) => verdict),
      ['reached', 'failed'],
    )
    await runAll(options(rows))
    assert.equal(await calls(), 'good bad')
    await runAll(options(rows, { again: true }))
    assert.equal(await calls(), 'good bad good bad')
    await commit('code.ts', 'two')
    await runAll(options(rows))
    assert.equal(await calls(), 'good bad good bad good bad')
  })

  test('lists the rows that are done, pending or without a script', async () => {
    const rows = [row('S1', 'good'), row('R1', 'good'), row('X1')]
    await runAll(options(rows, { only: ['S1', 'X1'] }))
    said.length = 0
    await listRows(options(rows))
    assert.match(said.join('\n'), /S1 +reached \(\d+ s\) +Row S1\nR1 +pending +Row R1\nX1 +no script +Row X1/)
  })

  test('replaces the line of its row in the results and leaves everything else', async () => {
    const rows = [row('S1', 'good'), row('S2', 'good'), row('R1', 'good')]
    await runAll(options(rows, { only: ['R1'] }))
    await runAll(options(rows, { only: ['S1'] }))
    const before = await page()
    assert.match(before, /^# Results\n\nIntroduction\.\n\n## Full runs\n/)
    assert.ok(before.endsWith('\n\n## Other\n\nText.\n'))
    const linesOf = (text: string) => text.split('\n').filter((line) => /^\| [A-Z]\d/.test(line))
    const [s1 = '', r1 = '', ...others] = linesOf(before)
    assert.deepEqual([s1.slice(0, 4), r1.slice(0, 4), others], ['| S1', '| R1', []])
    assert.match(
      s1,
      /^\| S1 \| Row S1 \| \*\*reached\*\* \| 1\.4 \\\| 1\.3 \| – \| \d{4}-\d\d-\d\d \d\d:\d\dZ \| [0-9a-f]{8} \| \d+ s \| /,
    )

    await commit('code.ts', 'two')
    await runAll(options([{ ...row('S1', 'slow') }, ...rows.slice(1)], { only: ['S1', 'S2'] }))
    const after = linesOf(await page())
    assert.deepEqual(
      after.map((line) => line.slice(2, 4)),
      ['S1', 'S2', 'R1'],
    )
    assert.match(after[0] ?? '', /\*\*missed\*\* \| ratio 0\.4/)
    assert.equal(after[2], r1)
    assert.equal(
      (await page()).replaceAll(/^\| [A-Z]\d.*\n/gm, ''),
      before.replaceAll(/^\| [A-Z]\d.*\n/gm, ''),
    )
  })

  test('rejects uncommitted code, and fails a row whose code changed while it ran', async () => {
    const [result] = await runAll(options([row('S1', 'edits')]))
    assert.equal(result?.verdict, 'failed')
    assert.match(result?.figures ?? '', /the code changed during the run/)
    await assert.rejects(runAll(options([row('S1', 'good')])), /code\.ts/)
  })

  test('rejects an unknown row', async () => {
    await assert.rejects(runAll(options([row('S1', 'good')], { only: ['S9'] })), /no row S9/)
  })

  test('records nothing for a row that was stopped', async () => {
    const stopping = new AbortController()
    const rows = [row('S1', 'good'), row('R1', 'good')]
    const say = (text: string): void => {
      if (text.startsWith('R1')) stopping.abort()
    }
    const results = await runAll(options(rows, { stopping: stopping.signal, say }))
    assert.deepEqual(
      results.map(({ id }) => id),
      ['S1'],
    )
    assert.ok(!existsSync(path.join(root, '.prove/R1.json')))
  })
})
