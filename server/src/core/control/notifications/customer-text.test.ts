import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labelOf, linkless } from './customer-text.ts'

describe('a project name in a message', () => {
  test('is shown if no mail client can turn it into a link', () => {
    for (const name of ['Web shop', "O'Neill & Sons (2026)", 'Überraschung_GmbH', '株式会社', 'a-b, c+d']) {
      assert.equal(labelOf('project', 7, name), `project "${name}" (number 7)`)
    }
    assert.equal(labelOf('project', 7, 'Ｗｅｂ'), 'project "Web" (number 7)')
  })

  test('is omitted if it contains addresses, links, phone numbers, look-alike dots or invisible characters', () => {
    const names = ['evil.example', 'www.evil', 'a@b', 'https://x', 'tel:1', 'a/b', 'a\\b', '[x](y)', '<b>']
    const tricks = [
      'evil。example',
      'evil．example',
      '⒈evil',
      'evil․com',
      'a\u200bb',
      'a\u202eb',
      'x"y',
      'x\ny',
    ]
    const others = ['call 555 1234', '+49 30 12345', 'a'.repeat(61), 'why?', '#hash', '℀', '']
    for (const name of [...names, ...tricks, ...others]) {
      assert.equal(labelOf('project', 7, name), 'project number 7', JSON.stringify(name))
    }
  })
})

test('a domain name or a diagnostic contains no link, address or invisible character', () => {
  assert.equal(linkless('shop.example.org'), 'shop[.]example[.]org')
  assert.equal(
    linkless('https://evil.example/x and a@b.example'),
    'https[:]//evil[.]example/x and a[at]b[.]example',
  )
  assert.equal(linkless('evil．example\u200b\r\nok'), 'evil[.]example ok')
  assert.equal(linkless('Deliveries failed. See the log.'), 'Deliveries failed. See the log.')
})
