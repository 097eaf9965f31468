import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Lookup } from '../../../platform/net/dns.ts'
import {
  evaluateRecords,
  type Finding,
  findingOf,
  type RecordLookup,
  type Result,
  statusAfter,
} from './evaluate-records.ts'
import type { DnsRecordView } from './wire.ts'

const found = (...values: string[]): Lookup => ({ kind: 'found', values })
const absent: Lookup = { kind: 'absent' }
const failed: Lookup = { kind: 'failed', why: 'the DNS server failed (SERVFAIL)' }

const record = (purpose: DnsRecordView['purpose'], type: DnsRecordView['type'], value: string) => ({
  purpose,
  type,
  name: `${purpose}.example.com`,
  value,
  status: 'pending' as const,
})
const ownership = record('ownership', 'TXT', 'postern-verification=abc')
const key = record('dkim', 'TXT', 'v=DKIM1; k=rsa; p=AAAA/BBBB+CC==')
const alias = record('dkim', 'CNAME', 'token.dkim.amazonses.com')
const returnPath = record('return_path', 'CNAME', 'bounces.postern.test')
const mx = record('mx', 'MX', '10 mx.postern.test')
const dmarc = record('dmarc', 'TXT', 'v=DMARC1; p=none')

describe('a lookup', () => {
  const cases: [record: DnsRecordView, lookup: Lookup, finding: Finding][] = [
    [ownership, found('postern-verification=abc'), 'found'],
    [ownership, found('v=spf1 -all', ' postern-verification=abc '), 'found'],
    [ownership, found('postern-verification=abcd'), 'absent'],
    [ownership, found('postern-verification=ABC'), 'absent'],
    [ownership, found('Postern-Verification=abc'), 'absent'],
    [ownership, absent, 'absent'],
    [ownership, failed, 'unknown'],

    [key, found('v=DKIM1; k=rsa; p=AAAA/BBBB+CC=='), 'found'],
    [key, found('p=AAAA/BBBB+CC=='), 'found'],
    [key, found('k=rsa;p=AAAA/ BBBB\t+CC== ;v=DKIM1;'), 'found'],
    [key, found('v=DKIM1; k=rsa; t=s; n=note; p=AAAA/BBBB+CC=='), 'found'],
    [key, found('v=DKIM1; k=rsa; p=AAAA/BBBB+DD=='), 'different'],
    [key, found('v=DKIM1; k=rsa; p='), 'different'],
    [key, found('v=DKIM1; k=ed25519; p=AAAA/BBBB+CC=='), 'different'],
    [key, found('v=DKIM2; k=rsa; p=AAAA/BBBB+CC=='), 'different'],
    [key, found('AAAA/BBBB+CC=='), 'different'],
    [key, absent, 'absent'],
    [key, failed, 'unknown'],

    [alias, found('token.dkim.amazonses.com'), 'found'],
    [alias, found('TOKEN.dkim.amazonses.com'), 'found'],
    [alias, found('token.dkim.amazonses.com.example.com'), 'different'],
    [returnPath, found('bounces.postern.test'), 'found'],
    [returnPath, found('elsewhere.test'), 'different'],
    [returnPath, absent, 'absent'],

    [mx, found('10 mx.postern.test'), 'found'],
    [mx, found('5 mx.elsewhere.test', '50 MX.postern.test'), 'found'],
    [mx, found('10 mx.elsewhere.test'), 'absent'],
    [mx, found('0 .'), 'absent'],

    [dmarc, found('v=DMARC1; p=reject; rua=mailto:d@example.com'), 'found'],
    [dmarc, found('v=DMARC1;p=none'), 'found'],
    [dmarc, found('V=dmarc1 ; p=none'), 'found'],
    [dmarc, found('v=DMARC12; p=none'), 'absent'],
    [dmarc, found('v=spf1 -all'), 'absent'],
  ]
  for (const [wanted, lookup, finding] of cases) {
    const what = lookup.kind === 'found' ? JSON.stringify(lookup.values) : lookup.kind
    test(`of ${wanted.purpose} ${wanted.type} with the result ${what} is ${finding}`, () => {
      assert.equal(findingOf({ record: wanted, lookup }), finding)
    })
  }
})

describe('the state of a record', () => {
  const after: Record<Finding, Record<DnsRecordView['status'], DnsRecordView['status']>> = {
    found: { pending: 'verified', verified: 'verified', failed: 'verified' },
    absent: { pending: 'pending', verified: 'failed', failed: 'failed' },
    different: { pending: 'failed', verified: 'failed', failed: 'failed' },
    unknown: { pending: 'pending', verified: 'verified', failed: 'failed' },
  }
  for (const [finding, moves] of Object.entries(after)) {
    for (const [before, expected] of Object.entries(moves)) {
      test(`changes from ${before} to ${expected} on ${finding}`, () => {
        assert.equal(statusAfter(finding as Finding, before as DnsRecordView['status']), expected)
      })
    }
  }
})

describe('an evaluation', () => {
  const nothingToSay = { result: 'complete' as Result, complaint: null }
  const seen = (wanted: DnsRecordView, lookup: Lookup = found(wanted.value)): RecordLookup => ({
    record: wanted,
    lookup,
  })
  const all = [seen(ownership), seen(key), seen(returnPath), seen(mx), seen(dmarc)]
  const but = (wanted: DnsRecordView, lookup: Lookup) =>
    all.map((one) => (one.record === wanted ? { record: wanted, lookup } : one))

  test('is complete with all required records', () => {
    assert.deepEqual(evaluateRecords(all, undefined, nothingToSay), {
      result: 'complete',
      complaint: null,
      isUnanswered: false,
    })
  })

  test('does not require MX and DMARC', () => {
    const bare = [seen(ownership), seen(key), seen(returnPath), seen(mx, absent), seen(dmarc, failed)]
    assert.deepEqual(evaluateRecords(bare, undefined, nothingToSay), {
      result: 'complete',
      complaint: null,
      isUnanswered: false,
    })
  })

  for (const wanted of [ownership, key, returnPath]) {
    test(`is incomplete without ${wanted.purpose}, and names the record`, () => {
      assert.deepEqual(evaluateRecords(but(wanted, absent), undefined, nothingToSay), {
        result: 'incomplete',
        complaint: `The ${wanted.type} record ${wanted.name} was not found.`,
        isUnanswered: false,
      })
    })

    test(`is unknown when the lookup of ${wanted.purpose} fails`, () => {
      assert.deepEqual(evaluateRecords(but(wanted, failed), undefined, nothingToSay), {
        result: 'unknown',
        complaint: `${wanted.name} could not be looked up: the DNS server failed (SERVFAIL).`,
        isUnanswered: true,
      })
    })
  }

  test('reports a record with a different value', () => {
    assert.match(
      evaluateRecords(but(key, found('p=ZZ')), undefined, nothingToSay).complaint ?? '',
      /different value\.$/,
    )
  })

  test('is incomplete when one record is missing and another lookup fails, and reports both', () => {
    const { result, complaint } = evaluateRecords(
      [seen(ownership, absent), seen(key, failed), seen(returnPath)],
      undefined,
      nothingToSay,
    )
    assert.equal(result, 'incomplete')
    assert.match(complaint ?? '', /ownership\.example\.com was not found\. dkim\.example\.com could not be/)
  })

  const words: [result: Result, expected: Result][] = [
    ['complete', 'complete'],
    ['incomplete', 'incomplete'],
    ['unknown', 'unknown'],
  ]
  for (const [result, expected] of words) {
    test(`is ${expected} with all records if the provider reports ${result}`, () => {
      const complaint = result === 'complete' ? null : 'Reported by the provider.'
      assert.deepEqual(evaluateRecords(all, undefined, { result, complaint }), {
        result: expected,
        complaint,
        isUnanswered: false,
      })
    })
  }

  test('requires the records even if the provider is satisfied', () => {
    assert.equal(evaluateRecords(but(ownership, absent), undefined, nothingToSay).result, 'incomplete')
  })

  test('does not require the record of a pending second key', () => {
    const waiting = { ...key, name: 'next.example.com' }
    for (const lookup of [absent, failed, found('p=ZZ')]) {
      const lookups = [...all, { record: waiting, lookup }]
      assert.equal(evaluateRecords(lookups, waiting.name, nothingToSay).result, 'complete')
    }
  })
})
