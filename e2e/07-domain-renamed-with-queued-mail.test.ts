import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, type Domain, openStage } from './stage.ts'

/**
 * The shop renames its domain while messages with the old name are queued. Messages accepted for the old name are
 * signed with the old identity, whose record is still in the DNS, and pass verification. No new messages are accepted
 * for the old name. Once the new name is verified, messages accepted for it are signed with the new identity.
 */
const stage = await openStage()
const project = `/admin/projects/${stage.project.id}`

describe('a domain that is renamed with mail in its queue', () => {
  it('signs queued messages with the old identity, and new ones with the new identity', async () => {
    const old = stage.domain
    await body(200, stage.admin.post(`${project}/queue/hold`, { reason: 'Until the name is changed' }))
    const waiting = await stage.send({ to: ['anna@example.net'] })

    const renamed = await body<Domain>(
      200,
      stage.admin.patch(`${project}/domains/${old.id}`, {
        name: 'store.example.org',
        reason: 'The shop has another name',
      }),
    )
    assert.equal(renamed.status, 'pending')
    assert.notEqual(renamed.identity.id, old.identity.id)
    const late = await stage.shop.post('/messages', {
      from: 'orders@shop.example.org',
      to: ['bea@example.net'],
      subject: 'Your order',
      text: 'It is on its way.',
    })
    assert.deepEqual([late.status, late.body.error], [403, 'domain_not_verified'])

    await stage.verify(renamed)
    const fresh = await stage.send({ from: 'orders@store.example.org', to: ['carl@example.net'] })
    assert.equal(stage.sink.received.length, 0)
    await body(200, stage.admin.post(`${project}/queue/release`, { reason: 'The name is changed' }))

    for (const [id, domain] of [
      [waiting, old],
      [fresh, renamed],
    ] as const) {
      await stage.settled(id, 'delivered')
      const [delivery] = stage.received(id)
      assert.ok(delivery)
      assert.ok(delivery.from.endsWith(`@bounces.${domain.name}`), delivery.from)
      const { dkim, spf, dmarc } = await stage.authentication(delivery)
      const { selector } = await stage.eventually(`the API returns a DKIM record for ${domain.name}`, () =>
        selectorOf(domain),
      )
      assert.deepEqual(dkim, [{ result: 'pass', domain: domain.name, selector }])
      assert.equal(spf.result, 'pass')
      assert.equal(dmarc.result, 'pass')
    }
  })
})

/** The name of the DKIM record: `<selector>._domainkey.<name>`. */
function selectorOf({ dns_records }: Domain): { selector: string } | undefined {
  const name = dns_records.map((record) => record.name).find((one) => one.includes('._domainkey.'))
  return name === undefined ? undefined : { selector: name.split('.')[0] ?? '' }
}
