import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PosternError } from '../../platform/errors.ts'
import { plainName, plainReason } from './text.ts'

const refused = (text: string): string => {
  try {
    plainName(text, 'title')
  } catch (error) {
    assert.ok(error instanceof PosternError && error.code === 'validation_failed')
    return error.message
  }
  return assert.fail(`${JSON.stringify(text)} was accepted`)
}

test('a name is trimmed and can contain any letters', () => {
  assert.equal(plainName('  Bills & reminders\n', 'title'), 'Bills & reminders')
  assert.equal(plainName('Ünïcödé 📮', 'title'), 'Ünïcödé 📮')
  assert.equal(plainName('📮'.repeat(100), 'title').length, 200, 'a character is a code point')
})

test('a name that is empty, too long or has several lines is rejected, and the error names the field and a remedy', () => {
  for (const empty of ['', ' ', '\t\n', '\u{feff}', '\u{200b}', '\u{2060}', '\u{ad}'])
    assert.match(refused(empty), /^"title" is empty/)
  assert.match(refused('x'.repeat(101)), /^"title" is longer than 100 characters/)
  for (const control of ['a\nb', 'a\0b', 'a\u{7f}b', 'a\u{85}b', 'a\u{1b}[31m', 'a\u{2028}b']) {
    assert.match(refused(control), /^"title" contains control characters/)
  }
  assert.match(refused('a\u{202e}b'), /^"title" contains characters that change the text direction/)
  assert.match(refused('a\u{d800}'), /^"title" contains an unpaired surrogate/)
})

test('a reason can be five times as long as a name', () => {
  assert.equal(plainReason(` ${'x'.repeat(500)} `).length, 500)
  assert.throws(() => plainReason('x'.repeat(501)), /"reason" is longer than 500 characters/)
})
