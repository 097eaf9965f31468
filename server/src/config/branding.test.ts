import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { UsageError } from '../platform/errors.ts'
import { loadConfig } from './config.ts'

const usable = {
  POSTERN_DATABASE_URL: 'postgres://postern:hunter2-hunter2@db.example.com/postern',
  POSTERN_PUBLIC_URL: 'https://mail.example.com',
  POSTERN_AUTH_SECRETS: `1:${'a'.repeat(32)}`,
  POSTERN_MASTER_KEYS: `1:${'a'.repeat(64)}`,
}

const load = (env: Record<string, string>, file?: Buffer) =>
  loadConfig({ ...usable, ...env }, undefined, () => {
    if (!file) throw new Error('ENOENT: no such file')
    return file
  })

function problemOf(env: Record<string, string>, file?: Buffer): string {
  try {
    load(env, file)
  } catch (error) {
    assert.ok(error instanceof UsageError)
    return error.message.split('\n').slice(1).join('\n').trim()
  }
  return ''
}

const svg = (inner: string): Buffer =>
  Buffer.from(
    `<?xml version="1.0"?>\n<!-- A logo -->\n<svg xmlns="http://www.w3.org/2000/svg">${inner}</svg>`,
  )
const logo = { POSTERN_LOGO_FILE: '/etc/postern/logo' }
// 1 × 1 pixel.
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

describe("the operator's branding", () => {
  test('is that of Postern unless it is configured', () => {
    const { installationName, logo, color, supportEmail, supportUrl, termsUrl, privacyUrl } = load({})
    assert.deepEqual(
      [installationName, logo, color, supportEmail, supportUrl, termsUrl, privacyUrl],
      ['Postern', undefined, undefined, undefined, undefined, undefined, undefined],
    )
  })

  test('accepts a name without control characters and markup', () => {
    assert.equal(load({ POSTERN_NAME: ' Ünïted Mail & Co. ' }).installationName, 'Ünïted Mail & Co.')
    for (const wrong of [' ', 'a'.repeat(51), 'Mail\r\nBcc: x@example.com', '<b>Mail</b>', '"Mail"']) {
      assert.match(problemOf({ POSTERN_NAME: wrong }), /^- POSTERN_NAME must be a name of 1 to 50 characters/)
    }
  })

  test('accepts a colour on which white text is legible', () => {
    assert.equal(load({ POSTERN_COLOR: '#2F4FD0' }).color, '#2f4fd0')
    assert.equal(load({ POSTERN_COLOR: '#767676' }).color, '#767676', 'the lightest grey with 4.5:1')
    assert.match(problemOf({ POSTERN_COLOR: '#777777' }), /its contrast is 4\.4:1, and 4\.5:1 is needed/)
    assert.match(problemOf({ POSTERN_COLOR: '#ffcc00' }), /too light for white text/)
    for (const wrong of ['blue', '#fff', '2f4fd0', '#2f4fd0aa']) {
      assert.match(problemOf({ POSTERN_COLOR: wrong }), /POSTERN_COLOR must look like #2f4fd0/)
    }
  })

  test('accepts pages over HTTPS and an address', () => {
    const config = load({
      POSTERN_SUPPORT_EMAIL: 'help@example.com',
      POSTERN_SUPPORT_URL: 'https://example.com/help?from=postern#top',
      POSTERN_TERMS_URL: 'https://example.com/terms',
      POSTERN_PRIVACY_URL: 'https://example.com/privacy',
    })
    assert.deepEqual(
      [config.supportEmail, config.supportUrl, config.termsUrl, config.privacyUrl],
      [
        'help@example.com',
        'https://example.com/help?from=postern#top',
        'https://example.com/terms',
        'https://example.com/privacy',
      ],
    )
    assert.match(problemOf({ POSTERN_SUPPORT_EMAIL: 'help' }), /must be an email address/)
    for (const name of ['POSTERN_SUPPORT_URL', 'POSTERN_TERMS_URL', 'POSTERN_PRIVACY_URL']) {
      assert.match(problemOf({ [name]: 'javascript:alert(1)' }), /must begin with https/)
      assert.match(problemOf({ [name]: 'http://example.com/' }), /must begin with https/)
      assert.match(problemOf({ [name]: 'https://ada:pw@example.com/' }), /must not contain a user name/)
    }
  })

  test('accepts a PNG and an SVG logo, and identifies its content', () => {
    const one = load(logo, png).logo
    assert.deepEqual([one?.type, one?.bytes.equals(png)], ['image/png', true])
    const other = load(logo, svg('<path d="M0 0"/>')).logo
    assert.equal(other?.type, 'image/svg+xml')
    assert.match(other?.digest ?? '', /^[0-9a-f]{16}$/)
    assert.notEqual(other?.digest, load(logo, svg('<path d="M1 1"/>')).logo?.digest)
    assert.equal(load(logo, Buffer.concat([Buffer.from('\uFEFF'), svg('')])).logo?.type, 'image/svg+xml')
  })

  test('rejects a logo that is missing, too large, of another type, or runs scripts', () => {
    assert.match(problemOf(logo), /POSTERN_LOGO_FILE cannot be read: ENOENT/)
    assert.match(problemOf(logo, svg(' '.repeat(65_536))), /has 65\d+ bytes; a logo can have at most 65536/)
    const neither = [
      Buffer.from('GIF89a'),
      Buffer.from('<html><svg xmlns="http://www.w3.org/2000/svg"/></html>'),
      Buffer.from('<svg/>'),
      Buffer.from([0xff, 0xfe, 0x3c]),
      png.subarray(0, 20),
      Buffer.alloc(0),
    ]
    for (const file of neither) assert.match(problemOf(logo, file), /is neither an SVG nor a PNG image/)
    const active = [
      '<script>alert(1)</script>',
      '<svg:script xmlns:svg="http://www.w3.org/2000/svg"/>',
      '<path ONLOAD = "alert(1)"/>',
      '<a href="JavaScript:alert(1)"/>',
    ]
    for (const inner of active)
      assert.match(problemOf(logo, svg(inner)), /scripts, event handlers or entities/)
  })
})
