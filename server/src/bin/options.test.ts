import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../platform/errors.ts'
import { readOptions } from './options.ts'
import { lineOf } from './progress.ts'

const options = {
  email: { value: '<address>', about: '', isRequired: true },
  file: { value: '<file>', about: '', isRepeated: true },
  out: { value: '<file>', about: '' },
  json: { about: '' },
} as const

test('parses required, repeated and optional options, and flags', () => {
  assert.deepEqual(readOptions(options, ['--email', 'a@b', '--file', '1', '--file', '2']), {
    ...{ email: 'a@b', file: ['1', '2'], json: false },
  })
  assert.deepEqual(readOptions(options, ['--email=a@b', '--json', '--out', 'x']), {
    ...{ email: 'a@b', file: [], json: true, out: 'x' },
  })
})

test('names every invalid argument', () => {
  const wrong: [args: string[], message: RegExp][] = [
    [[], /^Missing option: --email$/],
    [['--email', ''], /^Missing option: --email$/],
    [['--email', 'a@b', '--out', ''], /^Missing option: --out$/],
    [['--email', 'a@b', '--fly'], /--fly/],
    [['--email', 'a@b', 'more'], /more/],
    [['--email', 'a@b', '--json=yes'], /--json/],
  ]
  for (const [args, message] of wrong) {
    assert.throws(
      () => readOptions(options, args),
      (error) => error instanceof UsageError && message.test(error.message),
      args.join(' '),
    )
  }
})

test('progress is a bar if the total is known', () => {
  assert.equal(lineOf('rows verified', 12, undefined, 2500), '12 rows verified (2 s)')
  assert.equal(lineOf('migrations', 3, 6, 0), '[############............] 3 of 6 migrations (0 s)')
  assert.equal(lineOf('migrations', 7, 6, 0), '[########################] 7 of 6 migrations (0 s)')
})
