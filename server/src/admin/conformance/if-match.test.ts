import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { addressesBeside, withAuditAddresses } from '../../testing/expectations/audit-row.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { apiKeyConfiguration, endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, type Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { honoursIfMatch, methodOf } from '../schema.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const colleague = await signedIn(api)
const make = fixtures(database, admin)
const scenarios = mutationScenarios(database, admin)
const versioned = adminOperations.filter(isMutation).filter(honoursIfMatch)

/** A resource, the path to read it, and a request that changes it. */
async function prepared(operation: Mutation) {
  const scenario = scenarios[operation.id]?.find(({ changesNothing }) => !changesNothing)
  const { path, body } = (await scenario?.prepare()) ?? assert.fail(`${operation.id} has no scenario`)
  const item = path.replace(/\/(rotate|billing)$/, '')
  return { path, item, body: { ...body, reason }, etag: await etagAt(item) }
}

const etagAt = async (item: string): Promise<string> =>
  (await admin.get(item)).headers.get('etag') ?? assert.fail(`${item} has no ETag`)

const send = (
  operation: Mutation,
  { path, body }: { path: string; body: object },
  ifMatch?: string,
  client: Client = admin,
): Promise<Answer> =>
  client.request(methodOf(operation), path, body, ifMatch === undefined ? {} : { 'if-match': ifMatch })

const versionIn = (etag: string | null): number =>
  Number(/^"(\d+)"$/.exec(etag ?? '')?.[1] ?? assert.fail(`${etag} is not a valid ETag`))

const malformed = [
  '1',
  '"1',
  '1"',
  "'1'",
  '"1" "2"',
  '"1""2"',
  '"1"; "2"',
  '*, "1"',
  '**',
  'w/"1"',
  'W/1',
  'W/ "1"',
  'W/',
  '"a b"',
  '',
]

for (const operation of versioned) {
  describe(`If-Match on ${operation.id}`, () => {
    test('accepts the current version, a weak one, a list, or any version', async () => {
      for (const spell of [
        (etag: string) => etag,
        (etag: string) => `W/${etag}`,
        (etag: string) => `"4711", W/"abc" ,  ${etag}`,
        () => '*',
      ]) {
        const request = await prepared(operation)
        const answer = await send(operation, request, spell(request.etag))
        assert.ok(answer.status < 300, `${spell(request.etag)}: ${answer.text}`)
        if (operation.kind === 'delete') {
          assert.equal(answer.headers.get('etag'), null)
          continue
        }
        const etag = answer.headers.get('etag')
        assert.equal(versionIn(etag), versionIn(request.etag) + 1)
        assert.equal(await etagAt(request.item), etag)
      }
    })

    test('rejects another version and writes nothing', async () => {
      const request = await prepared(operation)
      const version = versionIn(request.etag)
      const rows = await watchRows(database, { except: ['control.denials'] })
      for (const stale of [
        `"${version + 1}"`,
        `"${version - 1}"`,
        `W/"${version + 1}"`,
        `"${version}0", "0${version}", "+${version}", "${version}.0"`,
        '""',
        '"*"',
      ]) {
        const refused = await send(operation, request, stale)
        assert.deepEqual([stale, refused.status, refused.body.error], [stale, 412, 'stale_resource'])
        assert.deepEqual(Object.keys(refused.body), ['error', 'message'])
        assert.equal(refused.headers.get('etag'), null)
      }
      await rows.assertUntouched()
      assert.ok((await send(operation, request, request.etag)).status < 300)
    })

    test('rejects a malformed value for any resource', async () => {
      const request = await prepared(operation)
      const rows = await watchRows(database)
      for (const header of malformed) {
        const refused = await send(operation, request, header)
        assert.deepEqual([header, refused.status, refused.body.error], [header, 400, 'invalid_parameter'])
      }
      await rows.assertUntouched()
    })
  })
}

describe('ETag', () => {
  test('stays the same if an edit changes nothing', async () => {
    for (const operation of versioned) {
      const scenario = scenarios[operation.id]?.find(({ changesNothing }) => changesNothing)
      if (!scenario) continue
      const { path, body } = await scenario.prepare()
      const etag = await etagAt(path.replace('/billing', ''))
      const answer = await send(operation, { path, body: { ...body, reason } }, etag)
      assert.deepEqual([operation.id, answer.status, answer.headers.get('etag')], [operation.id, 200, etag])
    }
  })

  test("does not change with the mail side's counters", async () => {
    const project = await make.makeProject()
    const { resource } = await make.makeEndpoint(project.id)
    await database.query('update control.project_stats set bounced = 7, computed_score = 50')
    await database.query(
      'insert into control.endpoint_stats (endpoint_id, project_id, consecutive_failures) values ($1, $2, 3)',
      [resource.id, project.id],
    )
    const projectPath = `/projects/${project.id}`
    const shown = await admin.get(projectPath)
    assert.deepEqual([shown.body.bounced, shown.headers.get('etag')], [7, '"1"'])
    assert.equal(await etagAt(`${projectPath}/endpoints/${resource.id}`), '"1"')
  })

  test('is optional: an edit without If-Match is accepted', async () => {
    const { id } = await make.makeProject()
    const answers = await Promise.all(
      [admin, colleague].map((client) => client.patch(`/projects/${id}`, { name: `By ${client.userId}` })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    assert.equal(await etagAt(`/projects/${id}`), '"3"')
  })
})

/**
 * Two administrators read the same version and write at the same time. `bodies` are the changes in one round. They
 * always differ from the current state. `npm run prove:races` runs a thousand rounds of each.
 */
interface Race {
  rounds: number
  bodies(round: number, current: Resource): [object, object]
}

// biome-ignore lint/suspicious/noExplicitAny: any response of the operation.
type Resource = any

const moreRounds = Number(process.env['POSTERN_TEST_ROUNDS'] ?? 5)

const named = (configuration: object, rounds = moreRounds): Race => ({
  rounds,
  bodies: (round) => [
    { ...configuration, name: `${round} of the first` },
    { ...configuration, name: `${round} of the second` },
  ],
})

const always = (body: object): Race => ({ rounds: moreRounds, bodies: () => [body, body] })

const races: Record<string, Race> = {
  'projects.edit': named({}, Math.max(moreRounds, 50)),
  'projects.set-billing': {
    rounds: moreRounds,
    bodies: (round) => {
      const rest = { billing_subscription_status: 'active', billing_product_id: null }
      return [
        { ...rest, billing_subscription_id: `sub_${round}_a` },
        { ...rest, billing_subscription_id: `sub_${round}_b` },
      ]
    },
  },
  'plans.edit': named({}),
  'policies.edit': named({ reason }),
  'domains.edit': {
    rounds: moreRounds,
    bodies: (round) => [{ name: `a${round}.example.com` }, { name: `b${round}.example.com` }],
  },
  'domains.rotate': always({ reason }),
  'endpoints.edit': named(endpointConfiguration),
  'endpoints.rotate': always({ reason }),
  'routing.edit': {
    rounds: moreRounds,
    bodies(round, { id, project_id, forward_confirmed_at, created_at, updated_at, ...configuration }) {
      const forwarded = { ...configuration, action: 'forward', endpoint_id: null }
      return [
        { ...forwarded, forward_to: `${round}.of.the.first@example.net` },
        { ...forwarded, forward_to: `${round}.of.the.second@example.net` },
      ]
    },
  },
  'api-keys.edit': named(apiKeyConfiguration),
  'api-keys.rotate': always({ reason }),
  'interventions.edit': {
    rounds: moreRounds,
    bodies: (round) =>
      [1, 2].map((n) => ({
        ...{ pace_per_hour: 2 * round + n, public_note: null, expires_at: null, reason },
      })) as [object, object],
  },
  'members.edit': {
    rounds: moreRounds,
    bodies(_round, { role }) {
      const [one, other] = ['admin', 'developer', 'viewer'].filter((name) => name !== role)
      return [{ role: one }, { role: other }]
    },
  },
  'notes.edit': {
    rounds: moreRounds,
    bodies: (round) => [{ text: `${round} of the first` }, { text: `${round} of the second` }],
  },
  'users.edit': always({ end_sessions: true, reason }),
}

describe('If-Match of two concurrent writers', () => {
  beforeEach(async () => {
    for (const client of [admin, colleague]) client.replaceToken(await api.tokenOf(client.email))
  })

  test('is tested on every operation with a version', () => {
    const racing = [...Object.keys(races), ...versioned.filter(isDelete).map(({ id }) => id)]
    assert.deepEqual(racing.sort(), versioned.map(({ id }) => id).sort())
  })

  for (const operation of versioned) {
    const race = races[operation.id]
    if (!race) continue
    test(`accepts exactly one on ${operation.id}, ${race.rounds} times, and loses no update`, async () => {
      const { path, item, etag: first } = await prepared(operation)
      let resource: Resource = (await admin.get(item)).body
      let etag = first
      for (let round = 0; round < race.rounds; round++) {
        const bodies: [object, object] = race.bodies(round, resource)
        const answers: Answer[] = await Promise.all([
          send(operation, { path, body: bodies[0] }, etag, admin),
          send(operation, { path, body: bodies[1] }, etag, colleague),
        ])
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 412])
        const winner = answers.find(({ status }) => status === 200) ?? assert.fail()
        resource = winner.body.resource ?? winner.body
        etag = winner.headers.get('etag') ?? assert.fail()
      }
      const shown = await admin.get(item)
      assert.deepEqual(shown.body, resource, 'the resource has the values of the last winner')
      assert.equal(versionIn(shown.headers.get('etag')), versionIn(first) + race.rounds)
      await assertUnbroken(operation.id, resource.id, race.rounds)
    })
  }

  for (const operation of versioned.filter(isDelete)) {
    test(`accepts exactly one on ${operation.id}, ${moreRounds} times`, async () => {
      for (let round = 0; round < moreRounds; round++) {
        const request = await prepared(operation)
        const answers = await Promise.all(
          [admin, colleague].map((client) => send(operation, request, request.etag, client)),
        )
        assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404])
      }
    })
  }
})

function isDelete({ kind }: Mutation): boolean {
  return kind === 'delete'
}

/** Each row starts with the state in which the previous row ended. */
async function assertUnbroken(operation: string, id: number, acts: number): Promise<void> {
  const found = await database.query<{ before: object; after: object; addresses: Record<string, string> }>(
    `select before, after, ${addressesBeside} as addresses from control.audit
      where operation = $1 and resource_id = $2 order by chain, seq`,
    [operation, String(id)],
  )
  const rows = found.map(withAuditAddresses)
  assert.equal(rows.length, acts)
  for (const [index, { before }] of rows.slice(1).entries()) {
    // The row records the number of revoked sessions, but the next row's state does not include it.
    const previous = { ...rows[index]?.after }
    assert.deepEqual({ ...before, sessions: 0 }, { ...previous, sessions: 0 })
  }
}
