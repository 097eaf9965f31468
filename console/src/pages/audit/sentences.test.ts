import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { auditedOperations, type Entry, type Names, sentenceOf, usersIn } from './sentences.ts'

const names: Names = {
  user: (id) => ({ 1: 'Ada', 2: 'Grace' })[id],
  project: (id) => ({ 7: 'Acme' })[id],
  plan: (id) => ({ 3: 'Business' })[id],
}

/** By Ada, of Acme. */
const entryOf = (operation: string, part: Partial<Entry> = {}): Entry => ({
  actor: { id: 1, email: 'ada@example.com', ip: null, user_agent: null },
  operation,
  project_id: 7,
  resource_type: 'project',
  resource_id: '7',
  before: null,
  after: null,
  subject: null,
  reason: null,
  ...part,
})
const told = (operation: string, part?: Partial<Entry>) => sentenceOf(entryOf(operation, part), names)
const edit = (before: object, after: object) =>
  told('projects.edit', { before: { name: 'Acme', ...before }, after: { name: 'Acme', ...after } })
const shell = { id: 0, email: null, ip: null, user_agent: 'postern, as root' }

describe('a sentence of the audit', () => {
  test('is known for every mutation of the interface', async () => {
    const generated = await readFile(new URL('../../api/operations.gen.ts', import.meta.url), 'utf8')
    const mutations = [...generated.matchAll(/^ {2}'([a-z.-]+)': \{\n(?: {4}.*\n)*? {4}hasPreview: true$/gm)]
    assert.ok(mutations.length > 20, 'the generated file reads otherwise than it did')
    const unknown = mutations.flatMap(([, id = '']) => (auditedOperations.includes(id) ? [] : [id]))
    assert.deepEqual(unknown, [])
  })

  test('tells every known operation in words, also where the row holds nothing', () => {
    for (const operation of auditedOperations) {
      assert.doesNotMatch(told(operation), / did |undefined|\[object/, operation)
    }
  })

  test('says what was edited of a project, all of it', () => {
    assert.equal(edit({ is_locked: false }, { is_locked: true }), 'Ada locked Acme')
    assert.equal(edit({ is_locked: true }, { is_locked: false }), 'Ada unlocked Acme')
    assert.equal(edit({}, { name: 'x'.repeat(81) }), `Ada renamed Acme to ${'x'.repeat(79)}…`)
    assert.equal(edit({}, { name: 'Acme EU' }), 'Ada renamed Acme to Acme EU')
    assert.equal(
      edit({ admin_plan_id: null }, { admin_plan_id: 3 }),
      "Ada overrode Acme's plan with plan Business",
    )
    assert.equal(edit({ admin_plan_id: 3 }, { admin_plan_id: null }), "Ada took Acme's plan override away")
    assert.equal(edit({ user_id: 1 }, { user_id: 2 }), 'Ada gave Acme to Grace')
    assert.equal(
      edit(
        { is_locked: false, reputation_score: 90, score_offset: 0, allow_service_mta: true },
        { is_locked: true, reputation_score: 20, score_offset: -70, allow_service_mta: false },
      ),
      'Ada locked Acme, set its score to 20 and kept it off our own MTAs',
    )
  })

  test('names what belongs to a project, and the project', () => {
    const endpoint = { resource_type: 'endpoint', resource_id: '4' }
    const before = { name: 'Orders', url: 'https://a.example', is_active: true, secret_hint: 'aaaa' }
    const after = (part: object) => ({ ...endpoint, before, after: { ...before, ...part } })
    assert.equal(
      told('endpoints.rotate', after({ secret_hint: 'bbbb' })),
      'Ada rotated the secret of endpoint Orders of Acme',
    )
    assert.equal(
      told('endpoints.edit', after({ is_active: false })),
      'Ada switched endpoint Orders of Acme off',
    )
    assert.equal(
      told('endpoints.edit', after({ is_active: false, url: 'https://b.example' })),
      'Ada changed the url and state of endpoint Orders of Acme',
    )
    assert.equal(told('endpoints.test', endpoint), 'Ada sent a test event to endpoint 4 of Acme')
    assert.equal(
      told('routing.delete', {
        resource_type: 'route',
        before: { match: 'address', address: 'hi@a.example' },
      }),
      'Ada deleted the route for hi@a.example of Acme',
    )
    assert.equal(
      told('domains.edit', {
        resource_type: 'domain',
        before: { name: 'a.example', mta_provider: 'service' },
        after: { name: 'b.example', mta_provider: 'ses' },
      }),
      'Ada renamed domain a.example of Acme to b.example and moved it from service to ses',
    )
  })

  test('speaks of people by their address, as long as it is there', () => {
    const member = { resource_type: 'member', resource_id: '9', after: { role: 'viewer' } }
    const subject = { email: 'bo@example.com', name: 'Bo' }
    assert.equal(
      told('members.create', { ...member, subject }),
      'Ada invited bo@example.com to Acme as viewer',
    )
    assert.equal(told('members.create', member), 'Ada invited member 9 to Acme as viewer')
    assert.equal(
      told('users.create', { actor: shell, project_id: null, resource_type: 'user', subject }),
      "The server's shell made bo@example.com an administrator",
    )
  })

  test('has a name for whoever acted, also when nobody knows them any more', () => {
    const by = (id: number, email: string | null) =>
      told('queue.hold', { actor: { id, email, ip: null, user_agent: null } })
    assert.equal(by(2, 'grace@example.com'), 'Grace held the mail of Acme')
    assert.equal(by(5, 'eve@example.com'), 'eve@example.com held the mail of Acme')
    assert.equal(by(5, null), 'User 5 held the mail of Acme')
    assert.deepEqual(usersIn(entryOf('queue.hold', { actor: shell })), [])
    assert.deepEqual(usersIn(entryOf('projects.edit', { after: { user_id: 2 } })), [1, 2])
  })

  test('says of an operation that it does not know what is certain', () => {
    assert.equal(
      told('endpoints.polish', { resource_type: 'endpoint', resource_id: '4' }),
      'Ada did endpoints.polish on endpoint 4',
    )
    assert.equal(told('constructor'), 'Ada did constructor on project 7')
  })
})
