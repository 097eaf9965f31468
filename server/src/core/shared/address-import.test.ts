import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../../testing/harness/parser-timing.ts'
import { importBodyBytes, importReport, maxImportLines, readImport } from './address-import.ts'

const known = ['bounce', 'complaint', 'manual']
const readReason = (text: string | null) =>
  text === null
    ? { reason: 'manual' }
    : known.includes(text)
      ? { reason: text }
      : { fault: `must be one of ${known.join(', ')}` }

function read(csv: string) {
  const file = readImport(csv, readReason)
  if ('refusal' in file) assert.fail(file.refusal.message)
  return file
}
const validIn = (csv: string) => read(csv).valid.map(({ line, address, reason }) => [line, address, reason])
const faultsIn = (csv: string) => read(csv).invalid.map(({ line, fault }) => [line, fault])
const refusalOf = (csv: string): string => {
  const file = readImport(csv, readReason)
  return 'refusal' in file ? file.refusal.message : assert.fail('the file was read')
}

describe('an imported file', () => {
  test('has one address per line, with an optional reason, and any line breaks', () => {
    assert.deepEqual(
      validIn('a@example.com\r\n\r\n  b@example.com , bounce\n\t\n"c@example.com","complaint"\r'),
      [
        [1, 'a@example.com', 'manual'],
        [3, 'b@example.com', 'bounce'],
        [5, 'c@example.com', 'complaint'],
      ],
    )
  })

  test('can have a byte order mark, and a header that determines the columns', () => {
    assert.deepEqual(
      validIn('\uFEFFcreated,Reason,EMAIL\n2026-01-01,bounce,a@example.com\n,,b@example.com'),
      [
        [2, 'a@example.com', 'bounce'],
        [3, 'b@example.com', 'manual'],
      ],
    )
    assert.deepEqual(validIn('Email address,x\na@example.com,whatever'), [[2, 'a@example.com', 'manual']])
  })

  test('can contain international addresses, whose domain is stored in A-labels', () => {
    assert.deepEqual(validIn('Грета@Bücher.example'), [[1, 'Грета@xn--bcher-kva.example', 'manual']])
  })

  test('can have invalid lines, which say why they are invalid', () => {
    const faults = faultsIn(
      [
        'no address',
        'a@b',
        '@example.com',
        'Ada <ada@example.com>',
        'a@example.com;b@example.com',
        'a@example.com,spam',
        'a@example.com,bounce,2026-01-01',
        '"a@example.com',
        'a"b@example.com',
        ',bounce',
        `${'a'.repeat(300)}@example.com`,
        'fine@example.com',
      ].join('\n'),
    )
    assert.deepEqual(
      faults.map(([line]) => line),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    )
    assert.match(String(faults[0]?.[1]), /^"address" must be ASCII without spaces/)
    assert.equal(faults[5]?.[1], '"reason" must be one of bounce, complaint, manual.')
    assert.equal(faults[6]?.[1], 'The line has more than two columns, and the file has no header.')
    assert.equal(faults[7]?.[1], 'The line has a quotation mark in the wrong place.')
  })

  test('is rejected as a whole if it has no addresses or too many lines', () => {
    for (const csv of ['', '\n \r\n', 'address,reason\n'])
      assert.equal(refusalOf(csv), '"csv" contains no addresses.')
    const lines = Array.from({ length: maxImportLines + 1 }, (_, n) => `a${n}@example.com`)
    const tooLong = '"csv" has more than 10000 addresses, or more than 20000 lines. Split the file.'
    assert.equal(refusalOf(lines.join('\n')), tooLong)
    assert.equal(validIn(['email', ...lines.slice(1)].join('\n')).length, maxImportLines)
    assert.equal(refusalOf(`a@example.com${'\n'.repeat(20_000)}`), tooLong)
    assert.equal(validIn(`${'\r\n'.repeat(19_999)}a@example.com`).length, 1)
  })

  test('can have lines of 4,000 characters, and a header with 50 columns', () => {
    const line = `a@example.com,manual,${' '.repeat(4000)}`
    assert.deepEqual(validIn(`email,reason,x\n${line.slice(0, 4000)}`), [[2, 'a@example.com', 'manual']])
    const tooLong = [1, 'The line is longer than 4000 characters.']
    assert.deepEqual(faultsIn(`${line}\na@example.com`), [tooLong])
    // A header that is not recognized is a line.
    assert.deepEqual(faultsIn(`email${','.repeat(4000)}\na@example.com`), [tooLong])
    assert.deepEqual(validIn(`${'x,'.repeat(49)}email\n${','.repeat(49)}a@example.com`), [
      [2, 'a@example.com', 'manual'],
    ])
    assert.equal(faultsIn(`${'x,'.repeat(50)}email\n${','.repeat(50)}a@example.com`).length, 2)
  })

  test('is read in a few milliseconds, whatever it contains', (t) => {
    const timing = new ParserTiming()
    const filled = (part: string) => part.repeat(importBodyBytes / part.length)
    for (const csv of [
      ...['\n', '\r', ' ', ',', '"', '""', 'a\n', ',,,"\n', 'a@example.com\n', '\u2028'].map(filled),
      `"${filled('a')}`,
      `address${filled(',')}\na`,
      `${'x,'.repeat(49)}email\n${filled(`${','.repeat(400)}\n`)}`,
      `email\n${filled('"a""b" \n')}`,
    ])
      timing.of(csv, () => readImport(csv, readReason))
    t.diagnostic(String(timing))
  })
})

describe('the report of an import', () => {
  const listed = (...addresses: string[]) =>
    addresses.map((address) => ({ address, is_suppressed: address.startsWith('old') }))

  test('has the result of every line, in the order of the file', () => {
    const file = read('new@example.com\nx\nOLD@example.com\nNew@example.com,bounce')
    const { report, added } = importReport(
      file,
      listed('new@example.com', 'old@example.com', 'new@example.com'),
    )
    const { lines, ...counts } = report
    assert.deepEqual(counts, { added: 1, already_suppressed: 1, duplicate: 1, invalid: 1 })
    assert.deepEqual(
      lines.map(({ line, address, result }) => [line, address, result]),
      [
        [1, 'new@example.com', 'added'],
        [2, 'x', 'invalid'],
        [3, 'old@example.com', 'already_suppressed'],
        [4, 'new@example.com', 'duplicate'],
      ],
    )
    assert.deepEqual(added, [{ address: 'new@example.com', reason: 'manual' }])
  })

  test('shortens the text of an invalid line', () => {
    const { report } = importReport(read(`${'x'.repeat(5000)}\na@example.com`), listed('a@example.com'))
    assert.equal(report.lines[0]?.address.length, 320)
  })
})
