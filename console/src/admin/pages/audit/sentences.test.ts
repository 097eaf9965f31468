import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { auditedOperations, type Entry, type Names, sentenceOf, usersIn } from './sentences.ts'

const names: Names = {
  user: (id) => ({ 1: 'Ada', 2: 'Grace' })[id],
  project: (id) => ({ 7: 'Acme' })[id],
  plan: (id) => ({ 3: 'Business' })[id],
  policy: (id) => ({ 4: 'Bounces' })[id],
}

/** By Ada, in the project Acme. */
const entryOf = (operation: string, part: Partial<Entry> = {}): Entry => ({
  actor_kind: 'person',
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
const sentence = (operation: string, part?: Partial<Entry>) => sentenceOf(entryOf(operation, part), names)
const edit = (before: object, after: object) =>
  sentence('projects.edit', { before: { name: 'Acme', ...before }, after: { name: 'Acme', ...after } })
const commandLine: Partial<Entry> = {
  actor_kind: 'shell',
  actor: { id: 0, email: null, ip: null, user_agent: 'postern, as root' },
}

describe('audit sentences', () => {
  test('exist for every mutation of the API', async () => {
    const generated = await readFile(new URL('../../operations.gen.ts', import.meta.url), 'utf8')
    const mutations = [...generated.matchAll(/^ {2}'([a-z.-]+)': \{\n(?: {4}.*\n)*? {4}hasPreview: true$/gm)]
    assert.ok(mutations.length > 20, 'the generated file has another format')
    const unknown = mutations.flatMap(([, id = '']) => (auditedOperations.includes(id) ? [] : [id]))
    assert.deepEqual(unknown, [])
  })

  test('exist for every known operation, even if the entry has no state', () => {
    for (const operation of auditedOperations) {
      assert.doesNotMatch(sentence(operation), / performed |undefined|\[object/, operation)
    }
  })

  test('name the rights of an administrator', () => {
    const subject = { email: 'bo@example.com', name: null }
    const editUser = (before: Entry['before'], after: Entry['after']) =>
      sentence('users.edit', { project_id: null, resource_type: 'user', subject, before, after })
    const user = { role: 'user', rights: null }
    const admin = { role: 'admin', rights: 'full' }
    const auditor = { role: 'admin', rights: 'auditor' }
    assert.equal(editUser(user, admin), 'Ada made bo@example.com an administrator')
    assert.equal(editUser(user, auditor), 'Ada made bo@example.com an administrator with auditor rights')
    assert.equal(editUser(auditor, admin), 'Ada gave bo@example.com full rights')
    assert.equal(editUser(auditor, user), 'Ada removed the administrator role from bo@example.com')
  })

  test('name every edited field of a project', () => {
    assert.equal(edit({ is_locked: false }, { is_locked: true }), 'Ada locked Acme')
    assert.equal(edit({ is_locked: true }, { is_locked: false }), 'Ada unlocked Acme')
    assert.equal(edit({}, { name: 'x'.repeat(81) }), `Ada renamed Acme to ${'x'.repeat(79)}…`)
    assert.equal(edit({}, { name: 'Acme EU' }), 'Ada renamed Acme to Acme EU')
    assert.equal(
      edit({ admin_plan_id: null }, { admin_plan_id: 3 }),
      "Ada overrode Acme's plan with plan Business",
    )
    assert.equal(edit({ admin_plan_id: 3 }, { admin_plan_id: null }), "Ada removed Acme's plan override")
    assert.equal(edit({ user_id: 1 }, { user_id: 2 }), 'Ada transferred Acme to Grace')
    assert.equal(
      edit(
        { is_locked: false, reputation_score: 90, score_offset: 0, allow_service_mta: true },
        { is_locked: true, reputation_score: 20, score_offset: -70, allow_service_mta: false },
      ),
      'Ada locked Acme, set its score to 20 and disallowed shared mail servers for it',
    )
  })

  test('name the resource and its project', () => {
    const endpoint = { resource_type: 'endpoint', resource_id: '4' }
    const before = { name: 'Orders', url: 'https://a.example', is_active: true, secret_hint: 'aaaa' }
    const after = (part: object) => ({ ...endpoint, before, after: { ...before, ...part } })
    assert.equal(
      sentence('endpoints.rotate', after({ secret_hint: 'bbbb' })),
      'Ada rotated the secret of endpoint Orders in Acme',
    )
    assert.equal(
      sentence('endpoints.edit', after({ is_active: false })),
      'Ada deactivated endpoint Orders in Acme',
    )
    assert.equal(
      sentence('endpoints.edit', after({ is_active: false, url: 'https://b.example' })),
      'Ada changed the url and state of endpoint Orders in Acme',
    )
    assert.equal(sentence('endpoints.test', endpoint), 'Ada sent a test event to endpoint 4 in Acme')
    assert.equal(
      sentence('routing.delete', {
        resource_type: 'route',
        before: { match: 'address', address: 'hi@a.example' },
      }),
      'Ada deleted the route for hi@a.example in Acme',
    )
    assert.equal(
      sentence('domains.edit', {
        resource_type: 'domain',
        before: { name: 'a.example', mta_provider: 'service' },
        after: { name: 'b.example', mta_provider: 'ses' },
      }),
      'Ada renamed domain a.example in Acme to b.example and moved it from service to ses',
    )
  })

  test('name interventions and discards', () => {
    const intervention = (operation: string, after: object) =>
      sentence(operation, { resource_type: 'intervention', resource_id: '5', after: { ...after } })
    assert.equal(intervention('interventions.create', { kind: 'lock' }), 'Ada started a lock on Acme')
    assert.equal(intervention('interventions.edit', { kind: 'warn' }), 'Ada edited the warning for Acme')
    assert.equal(
      intervention('interventions.create', { kind: 'pace', pace_per_hour: 1 }),
      'Ada started a pace of 1 recipient per hour on Acme',
    )
    assert.equal(
      intervention('interventions.end', { kind: 'pace', pace_per_hour: 1200 }),
      'Ada ended the pace of 1,200 recipients per hour on Acme',
    )
    assert.equal(
      intervention('interventions.expire', { kind: 'hold' }),
      'Ada ended the hold on Acme, which had expired',
    )
    const discard = { resource_type: 'discard', resource_id: '3' }
    const after = { tag: 'sale', recipient_domain: 'example.net', older_than: null }
    assert.equal(
      sentence('queue.discard', { ...discard, after }),
      "Ada started discarding Acme's queued mail (tag sale, domain example.net)",
    )
    assert.equal(sentence('queue.discard', discard), "Ada started discarding Acme's queued mail")
    assert.equal(sentence('discards.stop', discard), 'Ada stopped discard 3 in Acme')
  })

  test('name the operation of a bulk action and the number of projects', () => {
    const bulk = (operation: string) =>
      sentence(operation, {
        ...{
          project_id: null,
          resource_type: 'bulk_action',
          resource_id: '0198f2a4-0000-7000-8000-00000000000b',
        },
        after: { operation: 'projects.edit', matched: 1200 },
      })
    assert.equal(bulk('bulk.create'), 'Ada started a bulk action (projects.edit on 1,200 projects)')
    assert.equal(bulk('bulk.stop'), 'Ada stopped the bulk action (projects.edit on 1,200 projects)')
  })

  test('name the mode of a policy', () => {
    const before = { name: 'Bounces', mode: 'shadow', threshold: 20, tripped_at: '2026-11-14T09:30:00.000Z' }
    const edit = (part: object) =>
      sentence('policies.edit', {
        ...{ project_id: null, resource_type: 'policy', resource_id: '3' },
        ...{ before, after: { ...before, ...part } },
      })
    assert.equal(
      edit({ mode: 'enforce', tripped_at: null }),
      'Ada changed the mode of policy Bounces from shadow to enforce',
    )
    assert.equal(edit({ tripped_at: null }), 'Ada reset the breaker of policy Bounces')
    assert.equal(
      edit({ mode: 'off', threshold: 30, tripped_at: null }),
      'Ada changed the mode and threshold of policy Bounces',
    )
    assert.equal(
      sentence('policies.trip', {
        ...{ actor_kind: 'system', actor: { id: 0, email: null, ip: null, user_agent: null } },
        ...{ project_id: null, resource_type: 'policy', resource_id: '3', before, after: before },
      }),
      'Postern set policy Bounces to shadow, because it reached its limit of projects per hour',
    )
    assert.equal(edit({ name: 'Many bounces' }), 'Ada renamed policy Bounces to Many bounces')
  })

  test('name people by their address, unless it was erased', () => {
    const member = { resource_type: 'member', resource_id: '9', after: { role: 'viewer' } }
    const subject = { email: 'bo@example.com', name: 'Bo' }
    assert.equal(
      sentence('members.create', { ...member, subject }),
      'Ada added bo@example.com to Acme as viewer',
    )
    assert.equal(sentence('members.create', member), 'Ada added member 9 to Acme as viewer')
    assert.equal(
      sentence('users.create', { ...commandLine, project_id: null, resource_type: 'user', subject }),
      'bo@example.com was made an administrator from the command line',
    )
    assert.equal(
      sentence('users.issue-token', { ...commandLine, project_id: null, resource_type: 'user', subject }),
      'An access token for bo@example.com was issued from the command line',
    )
    assert.equal(sentence('queue.hold', commandLine), "An operator on the command line held Acme's mail")
    assert.equal(
      sentence('queue.release', {
        ...commandLine,
        project_id: null,
        resource_type: 'queue',
        resource_id: 'all',
      }),
      'An operator on the command line released all mail',
    )
  })

  test('name the actor, even after the user was deleted', () => {
    const by = (id: number, email: string | null) =>
      sentence('queue.hold', { actor: { id, email, ip: null, user_agent: null } })
    assert.equal(by(2, 'grace@example.com'), "Grace held Acme's mail")
    assert.equal(by(5, 'eve@example.com'), "eve@example.com held Acme's mail")
    assert.equal(by(5, null), "User 5 held Acme's mail")
    assert.equal(sentence('queue.hold', { ...commandLine, actor_kind: 'system' }), "Postern held Acme's mail")
    const byPolicy = (id: number) =>
      sentence('interventions.create', {
        ...{ actor_kind: 'policy', actor: { id, email: null, ip: null, user_agent: null } },
        ...{ resource_type: 'intervention', after: { kind: 'lock' } },
      })
    assert.equal(byPolicy(4), 'The policy “Bounces” started a lock on Acme')
    assert.equal(byPolicy(5), 'The policy 5 started a lock on Acme')
    assert.deepEqual(usersIn(entryOf('queue.hold', commandLine)), [])
    assert.deepEqual(usersIn(entryOf('projects.edit', { after: { user_id: 2 } })), [1, 2])
  })

  test('fall back to the operation id for an unknown operation', () => {
    assert.equal(
      sentence('endpoints.polish', { resource_type: 'endpoint', resource_id: '4' }),
      'Ada performed endpoints.polish on endpoint 4',
    )
    assert.equal(sentence('constructor'), 'Ada performed constructor on project 7')
  })
})
