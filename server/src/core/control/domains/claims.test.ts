import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Domain,
  recordOf,
  recordsOf,
  type Stage,
  startStage,
  startWorld,
} from '../../../testing/harness/verification-harness.ts'
import { checkDomain, checkDue } from './check.ts'

/** Two projects with the same name, or with one name that is a subdomain of the other. */
const world = await startWorld()
const { ses, publish, withdraw } = world
const stage = await startStage(world)
const { database, deps, check, show, reconcile, makeRegistered } = stage

const holders = (name: string, on: Stage = stage) =>
  on.database.query<{ id: string }>(
    `select id from control.domains where name = $1 and status = 'verified'`,
    [name],
  )

/** Two domains registered with SES, with published and verified DKIM records, but without ownership records. */
async function makePair(name: string, on: Stage = stage): Promise<[Domain, Domain]> {
  const one = await on.makeRegistered('ses', name)
  const other = await on.makeRegistered('ses', name)
  await publish(...recordsOf(one, 'dkim'))
  ses.setDkim(name, 'SUCCESS')
  return [one, other]
}

describe('a name in two projects', () => {
  test('is not verified without an ownership record, even if the provider has verified it', async () => {
    const pair = await makePair('nobody.example.com')
    for (const domain of pair) {
      const { status, last_check_error } = await check(domain)
      assert.equal(status, 'pending')
      assert.equal(last_check_error, 'The TXT record _postern.nobody.example.com was not found.')
    }
  })

  test('is verified for the project with the ownership record, and not for the other', async () => {
    const [one, other] = await makePair('his.example.com')
    await publish(recordOf(other, 'ownership'))
    assert.equal((await check(one)).status, 'pending')
    assert.equal((await check(other)).status, 'verified')
    const { status, last_check_error } = await check(one)
    assert.deepEqual(
      [status, last_check_error],
      ['pending', 'The TXT record _postern.his.example.com was not found.'],
    )
  })

  test('is verified only for the first of two projects that publish the record', async () => {
    const [one, other] = await makePair('both.example.com')
    await publish(recordOf(one, 'ownership'), recordOf(other, 'ownership'))
    assert.equal((await check(one)).status, 'verified')
    const second = await check(other)
    assert.deepEqual(
      [second.status, second.last_check_error],
      ['pending', 'both.example.com is already verified in another project.'],
    )
    assert.equal(recordOf(second, 'ownership').status, 'verified')
    assert.equal((await check(one)).status, 'verified', 'remains verified')
  })

  test('can be verified by the other project after its holder edits or deletes the domain', async () => {
    for (const letGo of [
      (domain: Domain) => stage.admin.patch(stage.pathOf(domain), { name: 'elsewhere.example.com' }),
      (domain: Domain) => stage.admin.delete(stage.pathOf(domain), { reason: 'Given up' }),
    ]) {
      const name = `passed${Math.random().toString(16).slice(2)}.example.com`
      const [one, other] = await makePair(name)
      await publish(recordOf(one, 'ownership'), recordOf(other, 'ownership'))
      await check(one)
      assert.equal((await check(other)).status, 'pending')
      assert.ok((await letGo(one)).status < 300)
      await reconcile(other)
      assert.equal(ses.has(name), true, 'SES still has it for the other project')
      assert.equal((await check(other)).status, 'verified')
    }
  })

  test("can be verified by the other project after the holder's record was missing for three days", async () => {
    const on = await startStage(world)
    const [one, other] = await makePair('fallen.example.com', on)
    await publish(recordOf(one, 'ownership'), recordOf(other, 'ownership'))
    await on.check(one)
    await on.check(other)
    await withdraw(recordOf(one, 'ownership'))
    for (const offset of ['1 minute', '2 days 23 hours']) {
      const deps = await on.later(offset)
      assert.equal((await on.check(one, deps)).status, 'verified')
      assert.equal((await on.check(other, deps)).status, 'pending')
    }
    const deps = await on.later('3 days 2 minutes')
    assert.equal((await on.check(one, deps)).status, 'failed')
    assert.equal((await on.check(other, deps)).status, 'verified')
    await publish(recordOf(one, 'ownership'))
    const late = await on.check(one, deps)
    assert.deepEqual(
      [late.status, late.last_check_error],
      ['failed', 'fallen.example.com is already verified in another project.'],
    )
    assert.equal((await holders('fallen.example.com', on)).length, 1)
  })

  test('never has two holders under concurrent checks', async () => {
    const rounds = 60
    const pair = await makePair('race.example.com')
    const ids = pair.map(({ id }) => id)
    await publish(...pair.map((domain) => recordOf(domain, 'ownership')))
    const wins = new Map<number, number>()
    for (let round = 0; round < rounds; round++) {
      await database.query(
        `update control.domains set status = 'pending', verified_at = null, failing_since = now(),
                next_check_at = '-infinity' where id = any ($1)`,
        [ids],
      )
      const order = round % 2 === 0 ? pair : [...pair].reverse()
      if (round % 3 === 0) await checkDue(deps, 100)
      else await Promise.all(order.map(({ id, project_id }) => checkDomain(deps, project_id, id)))
      const found = await holders('race.example.com')
      assert.equal(found.length, 1, `round ${round} has ${found.length} holders`)
      const winner = Number(found[0]?.id)
      wins.set(winner, (wins.get(winner) ?? 0) + 1)
      const loser = await show(pair.find(({ id }) => id !== winner) ?? assert.fail())
      assert.equal(loser.last_check_error, 'race.example.com is already verified in another project.')
    }
    assert.equal(wins.size, 2, 'each project was first at least once')
    assert.deepEqual(stage.errors(), [])
  })

  test('never has two holders while its holder fails and recovers', async () => {
    const rounds = 30
    const pair = await makePair('swing.example.com')
    await publish(...pair.map((domain) => recordOf(domain, 'ownership')))
    const [one, other] = pair
    await check(one)
    for (let round = 0; round < rounds; round++) {
      const edit = stage.admin.patch(stage.pathOf(one), { mta_provider: 'ses' })
      await Promise.all([edit, check(other), check(one)])
      assert.ok((await holders('swing.example.com')).length <= 1)
      const { dns_records } = await reconcile(one)
      await publish(recordOf({ dns_records }, 'ownership'))
      await Promise.all([check(other), check(one)])
      assert.equal((await holders('swing.example.com')).length, 1)
      await database.query(
        `update control.domains set status = 'pending', verified_at = null where id = $1`,
        [round % 2 === 0 ? other.id : one.id],
      )
      await check(one)
    }
    assert.deepEqual(stage.errors(), [])
  })
})

describe("a name below another project's name", () => {
  test('is not verified by the status that SES inherits from the parent', async () => {
    const parent = await makeRegistered('ses', 'parent.example.com')
    await publish(...parent.dns_records)
    ses.setDkim(parent.name, 'SUCCESS')
    assert.equal((await check(parent)).status, 'verified')

    const child = await makeRegistered('ses', 'child.parent.example.com')
    const report = await stage.api.context.providers.ses?.describe(child.name)
    assert.equal(report?.isVerified, true, 'SES would send mail')
    assert.equal((await check(child)).status, 'pending')

    await publish(...recordsOf(child, 'dkim'))
    const unowned = await check(child)
    assert.deepEqual(
      [unowned.status, unowned.last_check_error],
      ['pending', 'The TXT record _postern.child.parent.example.com was not found.'],
    )
    // The child is not verified by the parent's record or by the child's record under the parent's name.
    await publish({ ...recordOf(child, 'ownership'), name: '_postern.parent.example.com' })
    assert.equal((await check(child)).status, 'pending')
    await publish(recordOf(child, 'ownership'))
    assert.equal((await check(child)).status, 'verified', 'both names are verified')
    assert.equal((await check(parent)).status, 'verified')
  })

  test('needs its own DKIM records as well', async () => {
    const parent = await makeRegistered('ses', 'above.example.com')
    ses.setDkim(parent.name, 'SUCCESS')
    const child = await makeRegistered('ses', 'below.above.example.com')
    await publish(recordOf(child, 'ownership'))
    const { status, last_check_error } = await check(child)
    assert.equal(status, 'pending')
    assert.match(
      last_check_error ?? '',
      /^(?:The CNAME record \w+\._domainkey\.below\S+ was not found\. ?){3}/,
    )
  })
})
