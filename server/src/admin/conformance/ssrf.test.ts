import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures, routeConfiguration } from '../../testing/fixtures/fixtures.ts'
import { insideLiterals, insideNames } from '../../testing/fixtures/private-hosts.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/**
 * URLs with internal addresses are rejected with an explanation when they are configured. platform/net/ssrf.test.ts
 * tests that nothing connects to them.
 */
const database = await testDatabase()
const admin = await signedIn(await startApi(database))
const { makeProject, makeDomain } = fixtures(database, admin)
const { id: projectId } = await makeProject()
const domain = await makeDomain(projectId)

// There are two dozen notations for an address. Testing every seventh combination covers each notation with at least
// one address.
const hosts = [...insideLiterals.filter((_, n) => n % 7 < 2), ...insideNames]

async function eachRefused(send: (host: string) => Promise<Answer>, field: RegExp): Promise<void> {
  assert.ok(new Set(hosts).size >= 300, `${new Set(hosts).size} hosts`)
  for (let from = 0; from < hosts.length; from += 20) {
    const some = hosts.slice(from, from + 20)
    const answers = await Promise.all(some.map(send))
    for (const [n, answer] of answers.entries()) {
      assert.equal(answer.status, 422, `${some[n]}: ${answer.text}`)
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, field)
    }
  }
}

const counted = async (table: string): Promise<number> =>
  (await database.query<{ n: number }>(`select count(*)::int as n from control.${table}`))[0]?.n ?? -1

describe('an internal target', () => {
  test('is rejected as an endpoint URL', async () => {
    const create = (host: string) =>
      admin.post(`/projects/${projectId}/endpoints`, { ...endpointConfiguration, url: `https://${host}/x` })
    assert.equal((await create('hooks.example.com')).status, 201, 'an external address is accepted')
    await eachRefused(create, /^"url" .*\.$/)
    assert.equal(await counted('endpoints'), 1)
  })

  test('is rejected as a forwarding address, even as a domain literal', async () => {
    const forward = (at: (host: string) => string) => (host: string) =>
      admin.post(`/projects/${projectId}/routing`, {
        ...routeConfiguration,
        domain_id: domain.id,
        action: 'forward',
        forward_to: `ada@${at(host)}`,
      })
    await eachRefused(
      forward((host) => host),
      /^"forward_to" .*\.$/,
    )
    // RFC 5321 §4.1.3.
    await eachRefused(
      forward((host) => (host.startsWith('[') ? `[IPv6:${host.slice(1, -1)}]` : `[${host}]`)),
      /^"forward_to" .*\.$/,
    )
    assert.equal(await counted('routes'), 0)
    assert.equal(
      (await forward((host) => host)('example.net')).status,
      201,
      'an external address is accepted',
    )
  })
})
