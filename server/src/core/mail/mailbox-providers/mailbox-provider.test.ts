import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { domainToASCII } from 'node:url'
import { allDomains, mailboxProviderOf, mailboxProviders } from './mailbox-provider.ts'

describe('the mailbox provider of a domain', () => {
  const expected: Record<string, string> = {
    'gmail.com': 'gmail',
    'googlemail.com': 'gmail',
    'outlook.com': 'microsoft',
    'hotmail.co.uk': 'microsoft',
    'live.fr': 'microsoft',
    'msn.com': 'microsoft',
    'yahoo.com': 'yahoo',
    'ymail.com': 'yahoo',
    'aol.com': 'yahoo',
    'att.net': 'yahoo',
    'yahoo.co.jp': 'yahoo_japan',
    'icloud.com': 'apple',
    'gmx.net': 'gmx_webde',
    'web.de': 'gmx_webde',
    't-online.de': 't_online',
    'wanadoo.fr': 'orange',
    'free.fr': 'free_fr',
    'laposte.net': 'laposte',
    'libero.it': 'libero',
    'bk.ru': 'mail_ru',
    'ya.ru': 'yandex',
    'pm.me': 'proton',
    'comcast.net': 'comcast',
    'example.com': 'other',
    'mail.gmail.com': 'other',
    'gmail.com.example.com': 'other',
    'gmail.con': 'other',
    constructor: 'other',
    '': 'other',
  }
  for (const [domain, provider] of Object.entries(expected)) {
    test(`is ${provider} for "${domain}"`, () => assert.equal(mailboxProviderOf(domain), provider))
  }

  test('is unambiguous: no domain is listed twice', () => {
    assert.deepEqual(
      allDomains.filter((domain, index) => allDomains.indexOf(domain) !== index),
      [],
    )
  })

  test('is found by domains as they are in addresses: in lower case, as A-labels', () => {
    for (const domain of allDomains) {
      assert.equal(domainToASCII(domain), domain)
      assert.match(domain, /^[a-z0-9-]+(\.[a-z0-9-]+)+$/)
    }
  })

  test('has a name that can be part of a metric or a column', () => {
    for (const name of mailboxProviders) assert.match(name, /^[a-z][a-z_]*$/)
  })
})
