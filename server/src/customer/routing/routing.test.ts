import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { routeConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member } = await customers(api, database)
const { project } = await ownProject()
const { project: other } = await ownProject()
const developer = await member(project.id, 'developer')
const path = `/projects/${project.id}/routing`

describe('routing.create by a customer', () => {
  test("creates a route for one of the project's domains, one per address", async () => {
    const domain = await make.makeDomain(project.id)
    const wanted = {
      ...routeConfiguration,
      domain_id: domain.id,
      match: 'address',
      address: `a@${domain.name}`,
    }
    const answer = await developer.post(path, wanted)
    assert.equal(answer.status, 201, answer.text)
    assert.equal(answer.headers.get('location'), `/v1${path}/${answer.body.id}`)
    assert.deepEqual((await admin.get(`${path}/${answer.body.id}`)).body, answer.body)
    assertProblem(await developer.post(path, wanted), 409, 'already_exists')
    const { action: _left, ...incomplete } = wanted
    assertProblem(await developer.post(path, incomplete), 422, 'incomplete_configuration')
  })

  test("returns the same response for another project's domain or endpoint as for a missing one", async () => {
    const mine = await make.makeDomain(project.id)
    const theirs = await make.makeDomain(other.id)
    const endpoint = await make.makeEndpoint(other.id)
    const ask = (domain_id: number, endpoint_id: number | null) =>
      developer.post(path, {
        ...routeConfiguration,
        domain_id,
        ...(endpoint_id === null ? {} : { action: 'endpoint', endpoint_id }),
      })
    for (const [foreign, never] of [
      [await ask(theirs.id, null), await ask(987_654, null)],
      [await ask(mine.id, endpoint.resource.id), await ask(mine.id, 987_654)],
    ]) {
      assertProblem(foreign ?? assert.fail(), 422, 'validation_failed')
      assert.equal(foreign?.text, never?.text)
    }
  })
})

describe('routing.edit and routing.delete by a customer', () => {
  test('replace and delete a route', async () => {
    const domain = await make.makeDomain(project.id)
    const { id } = await make.makeRoute(project.id, { domain_id: domain.id })
    const wanted = { ...routeConfiguration, domain_id: domain.id, action: 'drop' }
    const edited = await developer.patch(`${path}/${id}`, wanted)
    assert.deepEqual([edited.status, edited.body.action, edited.headers.get('etag')], [200, 'drop', '"2"'])
    const again = await developer.patch(`${path}/${id}`, wanted)
    assert.deepEqual([again.text, again.headers.get('etag')], [edited.text, '"2"'])
    assert.equal((await developer.delete(`${path}/${id}`)).status, 204)
    assertProblem(await developer.get(`${path}/${id}`), 404, 'not_found')
  })
})

describe('routing.match by a customer', () => {
  test('returns the same response for a name that another project has verified, has claimed or does not have', async () => {
    const [held, claimed, free] = ['held-elsewhere.example', 'claimed-twice.example', 'nobody-else.example']
    await make.makeDomain(other.id, { name: held, status: 'verified' })
    await make.makeDomain(other.id, { name: claimed, status: 'pending' })
    const answers = []
    for (const name of [held, claimed, free]) {
      const domain = await make.makeDomain(project.id, { name, status: 'pending' })
      const route = await make.makeRoute(project.id, {
        ...{ domain_id: domain.id, match: 'address', address: `a@${name}` },
      })
      const answer = await developer.get(`${path}/match?address=a@${name}`)
      assert.equal(answer.status, 200, answer.text)
      const { created_at: _created, updated_at: _updated, ...rest } = answer.body.route
      const own = { ...answer.body, route: rest }
      const hidden = [name, domain.id, route.id].reduce(
        (text: string, mine) => text.replaceAll(String(mine), '…'),
        JSON.stringify(own),
      )
      answers.push(hidden)
      assert.equal(answer.body.outcome, 'domain_not_verified')
    }
    assert.deepEqual(new Set(answers).size, 1, answers.join('\n'))
    const never = await developer.get(`${path}/match?address=a@never-was.example`)
    await make.makeDomain(other.id, { name: 'of-another.example', status: 'verified' })
    const foreign = await developer.get(`${path}/match?address=a@of-another.example`)
    assert.equal(foreign.text.replaceAll('of-another', 'never-was'), never.text)
  })
})
