import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderSystemMail } from './render.ts'

const publicUrl = new URL('https://mail.example.com')

test('every text of a mail is escaped in the HTML', () => {
  const evil = `<img src="https://evil.example" onerror='x'>&`
  const { html, text } = renderSystemMail(
    { subject: evil, blocks: [evil, { items: [evil] }, { note: `${evil}\nsecond` }] },
    { name: evil, supportEmail: null, supportUrl: null },
    publicUrl,
  )
  assert.doesNotMatch(html, /<img|onerror='|"https:\/\/evil/)
  assert.equal(html.split('&lt;img src=&quot;').length - 1, 6)
  assert.ok(text.includes(evil))
})

test('the HTML has no images, tables, scripts, remote content or colors', () => {
  const { html } = renderSystemMail(
    { subject: 'Hello', blocks: ['a', { link: 'https://mail.example.com/x#y', label: 'Open' }] },
    { name: 'Example Mail', supportEmail: 'help@example.com', supportUrl: 'https://example.com/help' },
    publicUrl,
  )
  assert.doesNotMatch(
    html,
    /<(?:img|table|script|link|iframe|form|style)\b|url\(|(?:src|srcset)=|background|color:/i,
  )
  assert.ok(html.includes('<meta name="color-scheme" content="light dark">'))
  const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, link]) => link)
  assert.deepEqual(links, [
    ...['https://mail.example.com/x#y', 'https://mail.example.com'],
    ...['https://example.com/help', 'mailto:help@example.com'],
  ])
})

test('the text says the same, and ends with the operator and the support address', () => {
  const content = {
    subject: 'Hello',
    blocks: ['First', { link: 'https://mail.example.com/x', label: 'Open' }],
  }
  const operator = { name: 'Example Mail', supportEmail: 'help@example.com', supportUrl: null }
  assert.equal(
    renderSystemMail(content, operator, publicUrl).text,
    'First\n\nOpen:\nhttps://mail.example.com/x\n\nExample Mail, https://mail.example.com\nSupport: help@example.com\n',
  )
  const unsupported = { ...operator, supportEmail: null }
  assert.ok(
    renderSystemMail(content, unsupported, publicUrl).text.endsWith(
      '\n\nExample Mail, https://mail.example.com\n',
    ),
  )
})
