import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import Type from 'typebox'
import { BatchedKeyLookup } from '../../core/control/api-keys/batched-key-lookup.ts'
import { LastUsed } from '../../core/control/api-keys/last-used.ts'
import { Acceptance } from '../../core/mail/messages/acceptance.ts'
import { ItemParams, NoParams } from '../../platform/http/parameters.ts'
import { asResponse } from '../../platform/http/response.ts'
import { createHttpServer } from '../../platform/http/server.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { ampleByteLimits } from '../../testing/fixtures/byte-limits.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { authenticateRequests } from '../authenticate-request.ts'
import { type CustomerDeps, customerQuery, customOperation } from '../operation.ts'
import { registerOperations } from '../register.ts'

/** An operation that only uses authentication, with a path for members and one for API keys. */
const database = await testDatabase()
const api = await startApi(database)
const { ownProject, member, stranger, keyOf } = await customers(api, database)
const { owner, project } = await ownProject()
const { project: otherProject } = await ownProject()

const send = customOperation({
  id: 'messages.send',
  path: '/projects/:project_id/messages',
  pathOfKey: '/messages',
  method: 'POST',
  summary: 'Send',
  description: 'For the test.',
  params: NoParams,
  query: {},
  body: { subject: Type.String() },
  example: { subject: 'Hello' },
  leavesNoActivity: 'For the test.',
  success: { status: 202, means: 'Accepted.' },
  answer: Type.Unknown(),
  async handle({ caller, projectId, body, idempotencyKey, requestId, ip }) {
    return asResponse(202, { kind: caller.kind, projectId, ...body, idempotencyKey, requestId, ip })
  },
})

const show = customerQuery({
  id: 'messages.show',
  path: '/projects/:project_id/messages/:id',
  pathOfKey: '/messages/:id',
  summary: 'Show',
  description: 'For the test.',
  params: ItemParams,
  query: {},
  answer: Type.Unknown(),
  run: async ({ projectId, params }) => ({ answer: { projectId, ...params } }),
})

const url = await startPlane()

async function startPlane(): Promise<string> {
  const { db, cells, authenticate, domains, endpoints, orders, log, config } = api.context
  const app = createHttpServer({ log, trustedProxies: [], isHttps: false })
  const deps: CustomerDeps = {
    customer: db.customer,
    everywhere: db.everywhere,
    cellOf: cells.of,
    acceptance: new Acceptance(cells.all[0].mail, ['service'], ampleByteLimits),
    domains,
    endpoints,
    endpointCommands: orders,
    caps: config,
    sendingRules: { providers: new Set(['service']), byteLimits: ampleByteLimits },
    newProjects: { planId: undefined, allowServiceMta: false },
  }
  const unlimited = async () => ({ limit: 1, remaining: 0, resetSeconds: 1 })
  app.register(
    (plane, _options, done) => {
      authenticateRequests(plane, {
        authenticate,
        keys: new BatchedKeyLookup(db.everywhere),
        everywhere: db.everywhere,
        addressLimit: unlimited,
        callerLimits: { user: unlimited, key: unlimited },
        uses: new LastUsed(db.customer, () => {}),
      })
      registerOperations(plane, [send, show], deps)
      done()
    },
    { prefix: '/v1' },
  )
  cleanUp(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}

const here = ({ headers }: Client) => new Client(url, headers.authorization.slice('Bearer '.length), '/v1')
const mail = { subject: 'Hello' }

describe('a custom operation', () => {
  test('receives the authenticated caller and the project', async () => {
    const key = here(await keyOf(project.id, ['messages:send']))
    const answer = await key.post('/messages', mail, { 'idempotency-key': 'k' })
    assert.equal(answer.status, 202, answer.text)
    const { requestId, ...told } = answer.body
    assert.deepEqual(told, {
      kind: 'key',
      projectId: project.id,
      subject: 'Hello',
      idempotencyKey: 'k',
      ip: '127.0.0.1',
    })
    assert.equal(requestId, answer.headers.get('x-request-id'))
    const inPath = await here(owner).post(`/projects/${project.id}/messages`, mail)
    assert.deepEqual([inPath.body.kind, inPath.body.projectId], ['member', project.id])
  })

  test('has its body validated', async () => {
    const key = here(await keyOf(project.id, ['messages:send']))
    assertProblem(await key.post('/messages', { subject: 1 }), 422, 'validation_failed')
    assertProblem(await key.post('/messages'), 400, 'invalid_json')
    assertProblem(await key.post('/messages?x=1', mail), 400, 'invalid_parameter')
  })

  test('is available to an API key only in its own project, on both paths', async () => {
    const key = here(await keyOf(project.id, ['messages:send', 'messages:read']))
    assert.equal((await key.post(`/projects/${project.id}/messages`, mail)).status, 202)
    assertProblem(await key.post(`/projects/${otherProject.id}/messages`, mail), 404, 'not_found')
    const shown = await key.get('/messages/7')
    assert.deepEqual(shown.body, { projectId: project.id, id: 7 })
  })

  test('rejects members on the path for API keys, and the error names their path', async () => {
    for (const caller of [owner, await member(project.id, 'viewer'), await stranger()]) {
      const answer = await here(caller).post('/messages', mail)
      assertProblem(answer, 403, 'insufficient_role')
      assert.match(answer.body.message, /\/v1\/projects\/\{project_id\}/)
    }
  })

  test('follows the tables of roles and scopes', async () => {
    const viewer = here(await member(project.id, 'viewer'))
    assertProblem(await viewer.post(`/projects/${project.id}/messages`, mail), 403, 'insufficient_role')
    const reader = here(await keyOf(project.id, ['messages:read']))
    assertProblem(await reader.post('/messages', mail), 403, 'insufficient_scope')
    assertProblem(
      await here(await stranger()).post(`/projects/${project.id}/messages`, mail),
      404,
      'not_found',
    )
  })
})
