import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { escapeFormula, unescapeFormula } from './csv-formulas.ts'

const starts = ['=', '+', '-', '@', '\t', '\r', '\n', '\uff1d', '\uff0b', '\uff0d', '\uff20']

describe('a CSV field', () => {
  test('that a spreadsheet would evaluate begins with an apostrophe', () => {
    for (const start of starts) assert.equal(escapeFormula(`${start}1@example.net`), `'${start}1@example.net`)
    for (const field of ['', 'a=1@example.net', "'a@example.net", "o'=x@example.net"]) {
      assert.equal(escapeFormula(field), field)
    }
  })

  test('is the same after it is escaped and unescaped, whatever it begins with', () => {
    for (const apostrophes of ['', "'", "''"]) {
      for (const start of [...starts, '', 'a', '"']) {
        const field = `${apostrophes}${start}x@example.net`
        assert.equal(unescapeFormula(escapeFormula(field)), field)
      }
    }
  })

  test('that was not exported keeps its apostrophe, unless a formula follows', () => {
    assert.equal(unescapeFormula("'a@example.net"), "'a@example.net")
    assert.equal(unescapeFormula("'=a@example.net"), '=a@example.net')
  })
})
