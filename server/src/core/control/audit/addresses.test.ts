import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { addressDigests, withAddresses, withoutAddresses } from './addresses.ts'
import { erasePerson } from './erasure.ts'
import { verifyAudit } from './verify.ts'

/** An address in an audited change is stored outside the chain and can be erased. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const db = api.context.db.admin
const verify = () => verifyAudit(db, { keys: new Map() })

const { id: projectId } = await makeProject()
const domain = await makeDomain(projectId)
const target = { action: 'forward', endpoint_id: null, is_active: true }

async function makeRoute(forward_to: string) {
  const address = `${randomUUIDv7()}@${domain.name}`
  const config = { domain_id: domain.id, match: 'address', address, forward_to, ...target }
  const { status, body, text } = await admin.post(`/projects/${projectId}/routing`, config)
  assert.equal(status, 201, text)
  const [entry] = (await admin.get(`/audit?project_id=${projectId}&resource=route:${body.id}`)).body.data
  return { id: body.id as number, address, entry }
}

const chain = async () =>
  JSON.stringify(await database.query('select audit::text from control.audit as audit'))
const erase = (email: string) =>
  db.transaction((tx) => erasePerson(tx, { email, requestId: randomUUIDv7(), reason: 'erasure request' }))

describe('an address in an audited change', () => {
  test('is returned by the API but is not in the chain', async () => {
    const { address, entry } = await makeRoute('Grace.Hopper@example.net')
    assert.equal(entry.after.forward_to, 'Grace.Hopper@example.net')
    assert.equal(entry.after.address, address)
    const rows = await chain()
    assert.ok(!rows.includes('Hopper') && !rows.includes(address))
    assert.deepEqual((await verify()).first_bad, null)
  })

  test('becomes null after a case-insensitive erasure, and the audit log stays intact', async () => {
    const { id } = await makeRoute('Barbara.Liskov@example.net')
    assert.equal(await erase('barbara.liskov@EXAMPLE.net'), 1)
    const [entry] = (await admin.get(`/audit?project_id=${projectId}&resource=route:${id}`)).body.data
    assert.equal(entry.after.forward_to, null)
    const { ok, erased } = await verify()
    assert.deepEqual([ok, erased], [true, 1])
    const left = await database.query(
      `select from control.audit_people where lower(email) = 'barbara.liskov@example.net'`,
    )
    assert.deepEqual(left, [])
  })

  test('is erased from the questions of lookups, which keep who asked', async () => {
    await admin.get('/messages?recipient=Radia.Perlman@example.net')
    assert.equal(await erase('radia.perlman@example.net'), 1)
    const [lookup] = (await admin.get('/audit/lookups?limit=1')).body.data
    assert.deepEqual([lookup.actor_id, lookup.question], [admin.userId, 'erased'])
    const [entry] = (await admin.get('/audit?operation=audit.erase')).body.data
    assert.deepEqual(entry.after, { rows: 0, lookups: 1 })
    assert.equal((await verify()).first_bad, null)
  })

  test('is detected by verification if it was altered outside the chain', async () => {
    await makeRoute('edsger@example.net')
    await database.query(
      `update control.audit_people set email = 'forged@example.net' where email = 'edsger@example.net'`,
    )
    const { first_bad } = await verify()
    assert.match(
      first_bad?.problem ?? '',
      /is intact, but the personal data of its after.forward_to was altered/,
    )
    await database.query(
      `update control.audit_people set email = 'edsger@example.net' where email = 'forged@example.net'`,
    )
    assert.equal((await verify()).first_bad, null)
  })

  test('is also stored outside the chain for related resources', async () => {
    const { address } = await makeRoute('ada@example.net')
    const name = 'renamed.example.org'
    const path = `/projects/${projectId}/domains/${domain.id}`
    const answer = await admin.patch(path, { name, preserve_local_parts: true })
    assert.equal(answer.status, 200, answer.text)
    const [entry] = (await admin.get(`/audit?project_id=${projectId}&operation=domains.edit`)).body.data
    const moved = entry.related.find(
      ({ before }: { before: { address: string } }) => before.address === address,
    )
    assert.equal(moved.after.address, address.replace(domain.name, name))
    assert.ok(!(await chain()).includes(address.split('@')[0] ?? assert.fail()))
    assert.equal((await verify()).first_bad, null)
  })
})

describe('withoutAddresses', () => {
  const value = {
    name: 'a@example.com',
    forward_to: 'b@example.com',
    list: [{ address: null }, { email: 'c@x.y' }],
  }

  test('replaces only address fields, and withAddresses restores them', () => {
    const stored = new Map<string, string>()
    const bare = withoutAddresses(value, 'after', (path, address) => {
      stored.set(path, address)
      return `digest of ${path}`
    })
    assert.deepEqual(bare, {
      name: 'a@example.com',
      forward_to: { address_digest: 'digest of after.forward_to' },
      list: [{ address: null }, { email: { address_digest: 'digest of after.list.1.email' } }],
    })
    assert.deepEqual([...addressDigests(bare, 'after').keys()], [...stored.keys()])
    assert.deepEqual(withAddresses(bare, 'after', stored), value)
  })
})
