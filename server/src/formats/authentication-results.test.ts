import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Authentication, forwardVerdict } from './authentication-results.ts'

type Dmarc = Authentication['dmarc']

const verdict = (dmarc: Partial<Dmarc>, spf = 'fail', dkim: string[] = []) =>
  forwardVerdict({
    spf: { result: spf, domain: 'example.com' },
    dkim: dkim.map((result) => ({ result, domain: 'example.com', selector: 's' })),
    dmarc: { result: 'none', domain: 'example.com', policy: null, ...dmarc },
    arc: { result: 'none' },
  })

describe('the verdict on forwarding a message', () => {
  test('follows the DMARC policy of the domain in From', () => {
    assert.equal(verdict({ result: 'fail', policy: 'reject' }), 'refused')
    assert.equal(verdict({ result: 'fail', policy: 'quarantine' }), 'refused')
    assert.equal(verdict({ result: 'fail', policy: 'none' }), 'allowed')
    assert.equal(verdict({ result: 'pass', policy: 'reject' }), 'allowed')
    assert.equal(verdict({ result: 'none' }), 'allowed')
  })

  test('is unknown if a required lookup fails', () => {
    assert.equal(verdict({ result: 'temperror' }), 'unknown')
    assert.equal(verdict({ result: 'fail', policy: 'reject' }, 'temperror'), 'unknown')
    assert.equal(verdict({ result: 'fail', policy: 'reject' }, 'fail', ['fail', 'temperror']), 'unknown')
    assert.equal(verdict({ result: 'fail', policy: 'none' }, 'temperror'), 'allowed')
  })

  test('is "refused" unless From has exactly one domain', () => {
    assert.equal(verdict({ result: 'none', domain: null }), 'refused')
  })
})
