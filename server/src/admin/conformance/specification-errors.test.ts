import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { successOfKind } from '../../platform/http/kinds.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { isMutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf, schemaOf } from '../schema.ts'

/** Error responses: their format, and where each of them is documented. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const token = await api.tokenOf(admin.email)
const { makeProject, makeMember, makeEndpoint } = fixtures(database, admin)
const scenarios = mutationScenarios(database, admin)
const mutations = adminOperations.filter(isMutation)
const queries = adminOperations.flatMap((operation) => (isMutation(operation) ? [] : [operation]))

const project = await makeProject()
const path = `/projects/${project.id}`

// A missing table is an unexpected error. In a separate database, because other tests need their tables.
const brokenDatabase = await testDatabase()
const brokenApi = await startApi(brokenDatabase)
const brokenAdmin = await signedIn(brokenApi)
await brokenDatabase.query('drop table control.project_stats')

const strictApi = await startApi(database, { POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1' })
const strictAdmin = new Client(strictApi.url, token)

const sendText = (text: string, contentType = 'application/json'): Promise<Answer> =>
  fetchAnswer(path, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': contentType },
    body: text,
  })

async function fetchAnswer(below: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(`${api.url}/v1/admin${below}`, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

describe('the body of an error has exactly the fields "error" and "message"', () => {
  test('400, for a malformed path or body', async () => {
    assertProblem(await admin.get('/projects/first'), 400, 'invalid_parameter')
    assertProblem(await sendText('{"name": '), 400, 'invalid_json')
    assertProblem(await sendText(''), 400, 'invalid_json')
    assertProblem(await sendText('{"name": "A", "__proto__": {}}'), 400, 'invalid_json')
  })

  test('401, without a token', async () => {
    const answer = await fetchAnswer(path, {})
    assertProblem(answer, 401, 'unauthenticated')
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
  })

  test('403, for an API key', async () => {
    const answer = await new Client(api.url, `pk_live_${'0'.repeat(49)}`).get(path)
    assertProblem(answer, 403, 'api_key_not_allowed')
  })

  test('403, for a user who is not an administrator', async () => {
    const other = await signedIn(api)
    await admin.patch(`/users/${other.userId}`, { role: 'user', reason })
    assertProblem(await other.get(path), 403, 'admin_required')
  })

  test('403, for an administrator without the rights', async () => {
    const auditor = await signedIn(api, 'auditor')
    assertProblem(await auditor.patch(path, { name: 'Mine' }), 403, 'insufficient_rights')
  })

  test('404, for a missing resource, operation or path', async () => {
    assertProblem(await admin.get('/projects/0'), 404, 'not_found')
    assertProblem(await admin.patch('/projects/0', { name: 'Nobody' }), 404, 'not_found')
    assertProblem(await admin.get('/nothing'), 404, 'not_found')
    assertProblem(await fetchAnswer('/../nothing', {}), 404, 'not_found')
  })

  test("404, for another project's resource, with the same message as for a missing one", async () => {
    const other = await makeProject()
    const { id } = await makeMember(other.id)
    const foreign = await admin.get(`${path}/members/${id}`)
    const absent = await admin.get(`${path}/members/999999`)
    assertProblem(foreign, 404, 'not_found')
    assert.equal(foreign.text, absent.text.replace('999999', String(id)))
  })

  test('409, for a resource that already exists', async () => {
    const { email } = await makeMember(project.id)
    assertProblem(await admin.post(`${path}/members`, { email, role: 'viewer' }), 409, 'already_exists')
  })

  test('409, for the owner, who cannot be removed', async () => {
    const { id } = await makeProject()
    const { body: members } = await admin.get(`/projects/${id}/members`)
    const owner = `/projects/${id}/members/${members.data[0].id}`
    assertProblem(await admin.delete(owner, { reason }), 409, 'last_owner')
  })

  test('412, for a stale version', async () => {
    assertProblem(await admin.patch(path, { name: 'New' }, { 'if-match': '"0"' }), 412, 'stale_resource')
  })

  test('413, for a body that is too large', async () => {
    assertProblem(await sendText(JSON.stringify({ name: 'A'.repeat(70_000) })), 413, 'body_too_large')
  })

  test('415, for a body that is not JSON', async () => {
    assertProblem(await sendText('name=New', 'text/plain'), 415, 'unsupported_media_type')
  })

  test('422, for a body that violates a rule', async () => {
    assertProblem(await admin.post('/plans', {}), 422, 'validation_failed')
    assertProblem(await admin.patch(path, { is_locked: true }), 422, 'reason_required')
    const inactive = await admin.post('/plans', { ...planConfiguration, is_active: false })
    const moved = await admin.patch(path, { plan_id: inactive.body.id })
    assertProblem(moved, 422, 'plan_inactive')
    const { resource } = await makeEndpoint(project.id)
    const partial = await admin.patch(`${path}/endpoints/${resource.id}`, { name: 'New' })
    assertProblem(partial, 422, 'incomplete_configuration')
  })

  test('429, for too many requests, with the time to wait', async () => {
    assert.equal((await strictAdmin.get(path)).status, 200)
    const answer = await strictAdmin.get(path)
    assertProblem(answer, 429, 'rate_limited')
    assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
  })

  test('500, for an internal error, whose cause is only in the log', async () => {
    for (const answer of [
      await brokenAdmin.get('/projects'),
      await brokenAdmin.patch('/projects/1', { name: 'New' }),
    ]) {
      assertProblem(answer, 500, 'internal_error')
      assert.doesNotMatch(answer.text, /project_stats|relation|select|control/i)
      const requestId = answer.headers.get('x-request-id') ?? assert.fail()
      const line = brokenApi.logLines.find((entry) => entry.includes(requestId) && entry.includes('"err"'))
      assert.match(line ?? '', /project_stats/)
    }
  })

  test('500, if only writing fails', async () => {
    await brokenDatabase.query('drop table control.audit cascade')
    const answer = await brokenAdmin.post('/plans', planConfiguration)
    assertProblem(answer, 500, 'internal_error')
    assert.deepEqual((await brokenAdmin.get('/plans')).body.data, [])
  })
})

interface Documented {
  response: Record<string, { content?: Record<string, { schema: object }> }>
  headers?: { properties: Record<string, object> }
}

const documentedFor = (operation: (typeof adminOperations)[number]) => schemaOf(operation) as Documented

const failuresOf = ({ response }: { response: object }): number[] =>
  Object.keys(response)
    .map(Number)
    .filter((status) => status >= 400)

const eight = [400, 401, 403, 404, 409, 422, 429, 500]
const nine = [400, 401, 403, 404, 409, 412, 422, 429, 500]

describe('the documented errors', () => {
  for (const operation of mutations) {
    const honoursIfMatch = !['create', 'command', 'enqueue'].includes(operation.kind)
    test(`${operation.id} has ${honoursIfMatch ? 'nine, as it honours If-Match' : 'eight'}`, async () => {
      const documented = documentedFor(operation)
      assert.deepEqual(failuresOf(documented), honoursIfMatch ? nine : eight)
      assert.equal('if-match' in (documented.headers?.properties ?? {}), honoursIfMatch)

      const scenario = await scenarios[operation.id]?.[0]?.prepare()
      const request = scenario ?? assert.fail(`there is no scenario for ${operation.id}`)
      const answer = await admin.request(
        methodOf(operation),
        request.path,
        { ...request.body, reason },
        { 'if-match': '"999999"' },
      )
      if (honoursIfMatch) assertProblem(answer, 412, 'stale_resource')
      else assert.equal(answer.status, successOfKind[operation.kind], answer.text)
    })
  }

  for (const operation of queries) {
    test(`${operation.id} has those that can occur`, () => {
      const failures = failuresOf(documentedFor(operation))
      const possible = Object.keys(operation.params.properties).length > 0 ? [404] : []
      const ofBody = operation.body ? [422] : []
      assert.deepEqual(failures, [400, 401, 403, ...possible, ...ofBody, 429, 500])
    })
  }

  test('all have the same body', () => {
    for (const operation of adminOperations) {
      const { response } = documentedFor(operation)
      for (const status of failuresOf({ response })) {
        const schema = response[status]?.content?.['application/json']?.schema as {
          required: string[]
          properties: Record<string, { type: string }>
          additionalProperties: boolean
        }
        assert.deepEqual(schema.required, ['error', 'message'])
        assert.deepEqual(
          Object.values(schema.properties).map(({ type }) => type),
          ['string', 'string'],
        )
        assert.equal(schema.additionalProperties, false)
      }
    }
  })

  test('are the same in the OpenAPI document', async () => {
    const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>
    }
    for (const operation of adminOperations) {
      const address = `/v1${operation.path.replaceAll(/:(\w+)/g, '{$1}')}`
      const { responses } =
        document.paths[address]?.[methodOf(operation).toLowerCase()] ?? assert.fail(address)
      assert.deepEqual(
        failuresOf({ response: responses }),
        failuresOf(documentedFor(operation)),
        operation.id,
      )
      for (const status of failuresOf({ response: responses })) {
        assert.deepEqual(responses[status]?.content, {
          'application/json': { schema: { $ref: '#/components/schemas/Problem' } },
        })
      }
    }
  })
})
