import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member } = await customers(api, database)
const reason = 'No longer needed'

describe('projects.delete by a customer', () => {
  test('is available only to the owner', async () => {
    const { project } = await ownProject()
    const colleague = await member(project.id, 'admin')
    assertProblem(await colleague.delete(`/projects/${project.id}`), 403, 'insufficient_role')
  })

  test('deletes the project with its members, statistics and keys, and retains its audit rows', async () => {
    const { owner, project } = await ownProject()
    const { project: other } = await ownProject()
    const colleague = await member(project.id, 'viewer')
    // The project's data key was created for the endpoint's secret.
    const { resource } = await make.makeEndpoint(project.id)
    await admin.delete(`/projects/${project.id}/endpoints/${resource.id}`, { reason })
    const path = `/projects/${project.id}`
    assertProblem(await owner.delete(path, undefined, { 'if-match': '"9"' }), 412, 'stale_resource')
    const answer = await owner.delete(path)
    assert.deepEqual([answer.status, answer.text], [204, ''])

    assertProblem(await owner.get(path), 404, 'not_found')
    assertProblem(await colleague.get(path), 404, 'not_found')
    assertProblem(await admin.get(path), 404, 'not_found')
    assert.deepEqual((await owner.get('/projects')).body.data, [])
    for (const table of ['members', 'project_stats', 'project_keys', 'project_listing', 'identities']) {
      const rows = await database.query(`select from control.${table} where project_id = $1`, [project.id])
      assert.equal(rows.length, 0, table)
    }
    assert.equal((await admin.get(`/projects/${other.id}`)).status, 200)
    assert.ok((await admin.get(`/audit?project_id=${project.id}`)).body.data.length > 0)
  })

  test('is rejected while the project has resources, and the error names them', async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}`
    const refused = async (...words: RegExp[]) => {
      const answer = await owner.delete(path)
      assertProblem(answer, 409, 'in_use')
      for (const word of words) assert.match(answer.body.message, word)
      return answer
    }
    const domain = await make.makeDomain(project.id)
    const route = await make.makeRoute(project.id, { domain_id: domain.id })
    const endpoint = await make.makeEndpoint(project.id)
    const key = await make.makeApiKey(project.id)
    await domainRows(database).queueMail(project.id, domain.identity.id, 1)
    await refused(/domains/, /routes/, /endpoints/, /API keys/, /mail/)

    await admin.delete(`${path}/routing/${route.id}`, { reason })
    await admin.delete(`${path}/endpoints/${endpoint.resource.id}`, { reason })
    await admin.delete(`${path}/api-keys/${key.resource.id}`, { reason })
    await admin.delete(`${path}/domains/${domain.id}`, { reason })
    const { body } = await refused(/identities/, /mail/)
    assert.doesNotMatch(body.message, /domains|routes|endpoints|API keys/)

    await database.query('delete from mail.dispatch where project_id = $1', [project.id])
    await refused(/identities/)
    await database.query(
      `update control.identities set state = 'retired', reconcile_at = null where project_id = $1`,
      [project.id],
    )
    assert.equal((await owner.delete(path)).status, 204)
  })
})
