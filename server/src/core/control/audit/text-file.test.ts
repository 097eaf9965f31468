import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { byteLinesOf, linesOf } from './text-file.ts'

const folder = await mkdtemp(path.join(tmpdir(), 'postern-lines-'))
cleanUp(() => rm(folder, { recursive: true }))
const file = path.join(folder, 'file')

async function collected<Line>(lines: AsyncIterable<Line>): Promise<Line[]> {
  const all: Line[] = []
  for await (const line of lines) all.push(line)
  return all
}

test('the lines of a file end at a line that is too long', async () => {
  await writeFile(file, `one\n\u2028\n${'x'.repeat(3_000_000)}\nlast`)
  const all = await collected(linesOf(file))
  assert.deepEqual(
    all.map(({ text, isTorn }) => [text.length, isTorn]),
    [
      [3, false],
      [1, false],
      [3_000_000, false],
      [4, true],
    ],
  )
  const few = await collected(byteLinesOf(file, 2_000_000))
  assert.deepEqual(
    few.map(({ bytes, isTorn }) => [bytes.toString(), isTorn]),
    [
      ['one', false],
      ['\u2028', false],
      ['', true],
    ],
  )
  await assert.rejects(collected(linesOf(file, 2_000_000)), /has a line that is longer than any/)
})
