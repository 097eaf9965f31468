import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testDatabase } from '../../../testing/harness/database.ts'
import { lineOfDatabase, lineOfFile } from './export-lines.ts'

const database = await testDatabase()

async function throughPostgres(json: string): Promise<string> {
  const [row] = await database.query<{ text: string }>(
    'select json_build_object($1::text, $2::jsonb)::text as text',
    ['v', json],
  )
  return row?.text ?? ''
}

/** A random finite double of any magnitude. */
function randomNumber(): number {
  const bytes = new DataView(crypto.getRandomValues(new Uint8Array(8)).buffer)
  const value = bytes.getFloat64(0)
  return Number.isFinite(value) ? value : randomNumber()
}

describe('lineOfDatabase', () => {
  test('returns the value that JavaScript wrote, for any numbers and names', async () => {
    const numbers = [0, -0, 1, -1, 0.1, 9.99, 1e21, 1.5e-7, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER]
    const value = {
      numbers: [...numbers, ...Array.from({ length: 2000 }, randomNumber)],
      names: { b: 1, 10: 2, 9: 3, '': 4, __proto__x: 5, 'ü "\\\n\u2028\u007f': ' a  b ' },
    }
    const { text, isExact, value: read } = lineOfDatabase(await throughPostgres(JSON.stringify(value)))
    assert.equal(isExact, true)
    assert.deepEqual(read, { v: JSON.parse(JSON.stringify(value)) })
    assert.equal(lineOfFile(text)?.isExact, true)
  })

  test('detects numbers that JavaScript would not have written', async () => {
    for (const number of [
      '1.0',
      '-2.50',
      '0.0',
      '12345678901234567890',
      '1000000000000000000000001',
      '0.10000000000000000001',
      `1${'0'.repeat(400)}`,
    ]) {
      const line = lineOfDatabase(await throughPostgres(`{"a": [${number}, 1]}`))
      assert.equal(line.isExact, false, number)
      assert.ok(line.text.includes(number), 'the export contains the number as stored')
      assert.notEqual(lineOfFile(line.text)?.isExact, true, number)
    }
  })
})

describe('lineOfFile', () => {
  test('is exact only in the form that an export writes', () => {
    assert.equal(lineOfFile('{"a":1}')?.isExact, true)
    for (const text of [
      '{"a": 1}',
      '{"a":1.0}',
      '{"a":1,"a":1}',
      '{"a":"\\u0041"}',
      ' {"a":1}',
      '{"a":1e0}',
    ]) {
      assert.equal(lineOfFile(text)?.isExact, false, text)
    }
    assert.equal(lineOfFile('{"a":1'), undefined)
  })
})
