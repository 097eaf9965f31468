import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../context/context.ts'
import { checkDue } from '../../core/control/domains/check.ts'
import { reconcileDue } from '../../core/control/domains/reconcile-identities.ts'
import { reason } from '../../testing/expectations/mutations.ts'
import { assertShape, type Shape } from '../../testing/expectations/shape.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { startDns } from '../../testing/peers/dns.ts'
import { startSesPeer } from '../../testing/peers/ses-peer.ts'

/** The fields of a domain: exactly these, in this order, of these types, with and without a value. */
const database = await testDatabase()
const peer = await startSesPeer()
const dns = await startDns()
const api = await startApi(database, { ...peer.settings, POSTERN_DNS_SERVERS: dns.server })
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { id: projectId } = await makeProject()

const domain: Shape = [
  ['id', 'integer'],
  ['project_id', 'integer'],
  ['name', 'string'],
  ['mta_provider', 'string'],
  ['status', 'string'],
  ['identity', 'object'],
  ['dns_records', 'objects'],
  ['verified_at', 'timestamp'],
  ['last_checked_at', 'timestamp'],
  ['last_check_error', 'string'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]
const identity: Shape = [
  ['id', 'integer'],
  ['provider', 'string'],
  ['state', 'string'],
  ['selector', 'string'],
  ['registered_at', 'timestamp'],
]
const record: Shape = [
  ['purpose', 'string'],
  ['type', 'string'],
  ['name', 'string'],
  ['value', 'string'],
  ['status', 'string'],
]

const assertDomain = (
  body: Awaited<ReturnType<typeof makeDomain>>,
  empty: readonly string[],
  emptyIdentity: readonly string[],
) => {
  assertShape(body, domain, empty)
  assertShape(body.identity, identity, emptyIdentity)
  for (const item of body.dns_records) assertShape(item, record)
}

const unchecked = ['verified_at', 'last_checked_at', 'last_check_error']

describe('a domain', () => {
  test('has no results of checks or registration when it is new', async () => {
    assertDomain(await makeDomain(projectId), unchecked, ['selector', 'registered_at'])
    const signed = await makeDomain(projectId, { mta_provider: 'service' })
    assertDomain(signed, unchecked, ['registered_at'])
    const { body } = await admin.get(`/projects/${projectId}/domains`)
    assertDomain(body.data[0], unchecked, ['registered_at'])
  })

  test('shows when it was registered and what a check found missing', async () => {
    const { id } = await makeDomain(projectId, { mta_provider: 'service' })
    await reconcileDue(workerDeps(api.context), 100)
    await checkDue(workerDeps(api.context), 100)
    const { body } = await admin.get(`/projects/${projectId}/domains/${id}`)
    assertDomain(body, ['verified_at'], [])
    await database.query(`update control.domains set verified_at = now() where id = $1`, [id])
    const rotated = await admin.post(`/projects/${projectId}/domains/${id}/rotate`, { reason })
    assertDomain(rotated.body.resource, [], [])
    const edited = await admin.patch(`/projects/${projectId}/domains/${id}`, { name: 'edited.example.net' })
    assertDomain(edited.body, unchecked, ['registered_at'])
    assert.deepEqual(Object.keys(rotated.body), ['resource'])
  })
})
