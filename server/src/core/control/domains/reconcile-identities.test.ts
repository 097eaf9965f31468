import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SesProvider } from '../../../providers/ses-identities.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { openCells, testDatabase } from '../../../testing/harness/database.ts'
import {
  assertAliases,
  deedsOf,
  identitiesOf,
  startReconcileHarness,
} from '../../../testing/harness/reconcile-harness.ts'
import type { SesFault } from '../../../testing/peers/ses-peer.ts'
import { reconcileDue, reconcileIdentity } from './reconcile-identities.ts'

const { database, admin, peer, deps, make, after } = await startReconcileHarness()
const { id: project } = await make.makeProject()
const { id: otherProject } = await make.makeProject()

let names = 0
const newName = () => `shop${++names}.example.org`
const at = (domain: { project_id: number; id: number }) =>
  `/projects/${domain.project_id}/domains/${domain.id}`
const show = async (domain: { project_id: number; id: number }) => (await admin.get(at(domain))).body
const states = async (name: string) => (await identitiesOf(database, name)).map(({ state }) => state)
const callsAbout = (name: string) => peer.calls.filter(({ domain }) => domain === name).length

async function edit(domain: { project_id: number; id: number }, body: object) {
  const answer = await admin.patch(at(domain), body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

/** Reconciles all identities with these names, as the queued jobs would. */
async function settle(...about: string[]): Promise<void> {
  for (const name of about) {
    for (const { id } of await identitiesOf(database, name)) await reconcileIdentity(deps, id)
  }
}

/** A domain with a registered identity. */
async function settled(name = newName(), mta_provider: 'ses' | 'service' = 'ses', projectId = project) {
  const domain = await make.makeDomain(projectId, { name, mta_provider })
  await settle(name)
  return domain
}

describe('registration', () => {
  test("calls SES once, and the domain then shows SES's records", async () => {
    const domain = await make.makeDomain(project)
    const { identity } = domain
    assert.equal(identity.state, 'registering')
    await reconcileIdentity(deps, identity.id)
    await reconcileIdentity(deps, identity.id)
    const after = await show(domain)
    assert.equal(after.identity.state, 'registered')
    assert.notEqual(after.identity.registered_at, null)
    assertAliases(peer, after)
    assert.deepEqual(deedsOf(peer, domain.name), ['create'])
    assert.equal(callsAbout(domain.name), 1, 'a registered identity is not queried again')
    const [row] = await identitiesOf(database, domain.name)
    assert.deepEqual([row?.is_leased, row?.wait_seconds], [false, null])
  })

  test('succeeds if the name already exists at SES', async () => {
    const name = newName()
    await deps.providers.ses?.register(name)
    const domain = await settled(name)
    assertAliases(peer, await show(domain))
    assert.deepEqual(deedsOf(peer, name), ['create'])
  })

  test('is done by the periodic sweep if the job was lost', async () => {
    const domains = []
    for (let n = 0; n < 6; n++) domains.push(await make.makeDomain(project))
    await reconcileDue(deps, 100)
    for (const domain of domains) assert.equal((await show(domain)).identity.state, 'registered')
  })

  test('is repeated with new records for every project if the name was deleted at SES', async () => {
    const name = newName()
    const one = await settled(name)
    const other = await settled(name, 'ses', otherProject)
    await deps.providers.ses?.deregister(name)
    await database.query(
      `update control.identities set state = 'registering', reconcile_at = postern.now() where domain_id = $1`,
      [one.id],
    )
    await settle(name)
    for (const domain of [one, other]) assertAliases(peer, await show(domain))
  })

  test("makes no provider call for the operator's MTAs", async () => {
    const before = peer.calls.length
    const domain = await settled(newName(), 'service')
    assert.equal((await show(domain)).identity.state, 'registered')
    assert.equal(peer.calls.length, before)
  })

  const failures: [fault: SesFault & string, perAttempt: number, words: RegExp][] = [
    ['too_many_requests', 2, /too many requests/],
    ['throttling', 2, /too many requests/],
    ['internal', 2, /internal SES error/],
    ['unavailable', 2, /internal SES error/],
    ['bad_request', 1, /Invalid domain name/],
    ['access_denied', 1, /not authorized/],
    ['lose_request', 2, /connection failed/],
    ['lose_answer', 2, /connection failed/],
  ]
  for (const [fault, perAttempt, words] of failures) {
    test(`is retried after ${fault} with growing delays`, async () => {
      const domain = await make.makeDomain(project)
      const waits: (number | null | undefined)[] = []
      peer.failNext('create', fault, perAttempt * (fault === 'lose_answer' ? 1 : 4))
      if (fault === 'lose_answer') peer.failNext('get', fault, perAttempt * 3)
      for (let attempt = 1; attempt <= 4; attempt++) {
        await reconcileIdentity(deps, domain.identity.id)
        const [row] = await identitiesOf(database, domain.name)
        assert.deepEqual([row?.state, row?.attempts, row?.is_leased], ['error', attempt, false])
        assert.match(row?.last_error ?? '', words)
        waits.push(row?.wait_seconds)
      }
      assert.deepEqual(waits, [5, 10, 20, 40])
      assert.equal((await show(domain)).identity.state, 'error')
      await reconcileIdentity(deps, domain.identity.id)
      const [row] = await identitiesOf(database, domain.name)
      assert.deepEqual(
        [row?.state, row?.last_error, row?.attempts, row?.wait_seconds],
        ['registered', null, 0, null],
      )
      assert.deepEqual(deedsOf(peer, domain.name), ['create'])
      assertAliases(peer, await show(domain))
    })
  }

  test('is not retried before the delay is over', async () => {
    const domain = await make.makeDomain(project)
    peer.failNext('create', 'bad_request')
    await reconcileIdentity(deps, domain.identity.id)
    await reconcileDue(deps, 100)
    assert.equal(callsAbout(domain.name), 1)
    await reconcileDue(await after('6 seconds'), 100)
    assert.deepEqual(await states(domain.name), ['registered'])
  })
})

describe('deregistration', () => {
  test('follows a rename, and the new name is registered', async () => {
    const domain = await settled()
    const name = newName()
    await edit(domain, { name })
    assert.deepEqual(await states(domain.name), ['retiring'])
    await settle(domain.name, name)
    assert.deepEqual(await states(domain.name), ['retired'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create', 'delete'])
    assert.deepEqual(deedsOf(peer, name), ['create'])
    assertAliases(peer, await show(domain))
  })

  test('follows the deletion of the domain, and a change of its provider', async () => {
    const [gone, moved] = [await settled(), await settled()]
    assert.equal((await admin.delete(at(gone), { reason: 'Given up' })).status, 204)
    await make.allowServiceMta(project)
    await edit(moved, { mta_provider: 'service' })
    await settle(gone.name, moved.name)
    assert.deepEqual(await states(gone.name), ['retired'])
    assert.deepEqual(await states(moved.name), ['retired', 'registered'])
    for (const { name } of [gone, moved]) assert.deepEqual(deedsOf(peer, name), ['create', 'delete'])
  })

  for (const fault of ['internal', 'lose_request', 'lose_answer', 'bad_request'] as const) {
    test(`happens once despite ${fault}`, async () => {
      const domain = await settled()
      await admin.delete(at(domain), { reason: 'Given up' })
      peer.failNext('delete', fault, fault === 'bad_request' ? 1 : 2)
      await settle(domain.name)
      assert.deepEqual(await states(domain.name), ['error'])
      await settle(domain.name)
      assert.deepEqual(await states(domain.name), ['retired'])
      assert.deepEqual(deedsOf(peer, domain.name), ['create', 'delete'])
    })
  }

  test('is cancelled if the domain is renamed back', async () => {
    const domain = await settled()
    const elsewhere = newName()
    await edit(domain, { name: elsewhere })
    await edit(domain, { name: domain.name })
    await settle(domain.name, elsewhere)
    assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    assert.deepEqual(await states(elsewhere), ['retired'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create'])
    assert.deepEqual(deedsOf(peer, elsewhere), [])
    assertAliases(peer, await show(domain))
  })

  test('does not follow an edit without changes', async () => {
    const domain = await settled()
    await edit(domain, { name: domain.name })
    await settle(domain.name)
    assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create'])
    assertAliases(peer, await show(domain))
  })

  test('waits while another project has the name', async () => {
    const name = newName()
    const one = await settled(name)
    const other = await settled(name, 'ses', otherProject)
    await admin.delete(at(one), { reason: 'Given up' })
    await settle(name)
    assert.deepEqual(await states(name), ['retired', 'registered'])
    assert.deepEqual(deedsOf(peer, name), ['create'])
    await admin.delete(at(other), { reason: 'Given up' })
    await settle(name)
    assert.deepEqual(await states(name), ['retired', 'retired'])
    assert.deepEqual(deedsOf(peer, name), ['create', 'delete'])
  })

  test('follows a deletion during the registration', async () => {
    const domain = await make.makeDomain(project)
    peer.hooks.onEffect = async ({ domain: name }) => {
      if (name === domain.name) await admin.delete(at(domain), { reason: 'A mistake' })
      peer.hooks.onEffect = () => {}
    }
    await reconcileIdentity(deps, domain.identity.id)
    assert.deepEqual(await states(domain.name), ['retired'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create', 'delete'])
  })

  test('is undone if a domain with the name is created in the meantime', async () => {
    const domain = await settled()
    await admin.delete(at(domain), { reason: 'Given up' })
    let again: Awaited<ReturnType<typeof make.makeDomain>> | undefined
    peer.hooks.onRequest = async ({ kind, domain: name }) => {
      if (kind !== 'delete' || name !== domain.name) return
      peer.hooks.onRequest = () => {}
      again = await make.makeDomain(otherProject, { name })
      // The job of the new domain finds the lease held and does nothing.
      await reconcileIdentity(deps, again.identity.id)
    }
    await settle(domain.name)
    assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create', 'delete', 'create'])
    assertAliases(peer, await show(again ?? assert.fail()))
  })

  test("is limited to the identity's account and region", async () => {
    const domain = await settled()
    await database.query(`update control.identities set region = 'us-east-1' where domain_id = $1`, [
      domain.id,
    ])
    const moved = await edit(domain, { name: domain.name })
    await settle(domain.name)
    assert.deepEqual(await states(domain.name), ['error', 'registered'])
    assert.equal((await show(domain)).identity.id, moved.identity.id)
    assert.ok(peer.has(domain.name), 'the identity in the configured region remains')

    const there = new SesProvider({
      region: 'us-east-1',
      accountId: peer.location.account,
      endpoint: peer.url,
    })
    cleanUp(async () => there.close())
    await there.register(domain.name)
    const [old] = await identitiesOf(database, domain.name)
    await reconcileIdentity({ ...deps, providers: { ...deps.providers, ses: there } }, old?.id ?? 0)
    assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    assert.equal(peer.has(domain.name, there.location as { account: string; region: string }), false)
    assert.ok(peer.has(domain.name))
  })
})

describe('queued mail', () => {
  const queue = (projectId: number, identityId: number) =>
    database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       select gen_random_uuid(), n, $1, $2, 'service', 'somebody@example.net'
         from generate_series(1, 3) as n`,
      [projectId, identityId],
    )
  const dkimKeys = async (identityId: number) =>
    (await database.query('select from control.dkim_keys where identity_id = $1', [identityId])).length

  test('delays the deregistration until it is sent', async () => {
    const domain = await settled()
    await queue(project, domain.identity.id)
    await admin.delete(at(domain), { reason: 'Given up' })
    await settle(domain.name)
    const [held] = await identitiesOf(database, domain.name)
    assert.deepEqual([held?.state, held?.wait_seconds, held?.is_leased], ['retiring', 300, false])
    assert.deepEqual(deedsOf(peer, domain.name), ['create'])
    await reconcileDue(await after('6 minutes'), 100)
    assert.deepEqual(deedsOf(peer, domain.name), ['create'], 'still registered')
    await database.query('delete from mail.dispatch where identity_id = $1', [domain.identity.id])
    await reconcileDue(await after('6 minutes'), 100)
    assert.deepEqual(await states(domain.name), ['retired'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create', 'delete'])
  })

  test('is assumed while the mail side has not replicated the retirement or is unreachable', async () => {
    const domain = await settled()
    await admin.delete(at(domain), { reason: 'Given up' })
    const nowhere = new URL(database.url)
    nowhere.port = '1'
    const behind = openCells(await testDatabase())
    const away = openCells({ ...database, url: nowhere.href, cellUrl: undefined })
    for (const { mailOf } of [behind, away]) {
      await reconcileIdentity({ ...deps, mailOf }, domain.identity.id)
      const [held] = await identitiesOf(database, domain.name)
      assert.deepEqual([held?.state, held?.wait_seconds, held?.is_leased], ['retiring', 5, false])
      assert.deepEqual(deedsOf(peer, domain.name), ['create'])
    }
    await settle(domain.name)
    assert.deepEqual(await states(domain.name), ['retired'])
  })

  test('is signed with the retiring key, which is deleted afterwards', async () => {
    const domain = await settled(newName(), 'service')
    const old = domain.identity.id
    await queue(project, old)
    const { identity } = await edit(domain, { name: domain.name })
    await settle(domain.name)
    assert.deepEqual(await states(domain.name), ['retiring', 'registered'])
    assert.deepEqual([await dkimKeys(old), await dkimKeys(identity.id)], [1, 1])
    await database.query('delete from mail.dispatch where identity_id = $1', [old])
    await settle(domain.name)
    assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    assert.deepEqual([await dkimKeys(old), await dkimKeys(identity.id)], [0, 1])
  })
})
