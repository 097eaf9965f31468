import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf, keptOfDomain } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { databaseNow, testDatabase } from '../../testing/harness/database.ts'

/** The effects on routes are tested in edit-domain-routes.test.ts. */
const database = await testDatabase()
const api = await startApi(database, { POSTERN_RETURN_PATH_HOST: 'bounces.postern.test' })
const admin = await signedIn(api)
const { makeProject, makeDomain, allowServiceMta } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const { identities, keys, jobs, queueMail, boundKey, routes } = domainRows(database)

interface Domain {
  id: number
  project_id: number
}
const pathOf = ({ id, project_id }: Domain) => `/projects/${project_id}/domains/${id}`
const edit = (domain: Domain, body: object, headers?: Record<string, string>): Promise<Answer> =>
  admin.patch(pathOf(domain), body, headers)
const dryRun = (domain: Domain, body: object): Promise<Answer> =>
  admin.patch(`${pathOf(domain)}?dry_run=true`, body)
const show = async (domain: Domain) => (await admin.get(pathOf(domain))).body

/** Simulates that the domain's records were published, verified and, optionally, removed again. */
async function makeVerified(mta_provider: 'service' | 'ses' = 'service', name?: string) {
  const project = await makeProject()
  const domain = await makeDomain(project.id, { mta_provider, ...(name === undefined ? {} : { name }) })
  await database.query(
    `update control.domains set status = 'verified', verified_at = now(), last_checked_at = now(),
            last_check_error = 'One is missing.', next_check_at = now() + interval '1 day', checks_failed = 3,
            failing_since = now() - interval '2 days' where id = $1`,
    [domain.id],
  )
  await database.query(`update control.dns_records set status = 'verified' where domain_id = $1`, [domain.id])
  await database.query(
    `update control.identities set state = 'registered', registered_at = now(), reconcile_at = null where id = $1`,
    [domain.identity.id],
  )
  await database.query(
    `update control.dkim_keys set state = 'active', activated_at = now() where identity_id = $1`,
    [domain.identity.id],
  )
  return show(domain)
}

describe('domains.edit', () => {
  const changes: Record<string, [from: 'service' | 'ses', body: object]> = {
    'a new name': ['service', { name: 'new.example.com' }],
    'another provider': ['service', { mta_provider: 'ses' }],
    both: ['ses', { name: 'both.example.com', mta_provider: 'service' }],
    'the name that it has': ['ses', { name: 'same1.example.com' }],
    'the provider that it has': ['service', { mta_provider: 'service' }],
  }
  for (const [what, [from, body]] of Object.entries(changes)) {
    test(`with ${what} registers a replacement and resets verification`, async () => {
      const name = 'name' in body && what.includes('that it has') ? String(body.name) : undefined
      const before = await makeVerified(from, name)
      await allowServiceMta(before.project_id)
      const answer = await edit(before, body)
      assert.equal(answer.status, 200, answer.text)
      const { identity, dns_records, updated_at } = answer.body
      assert.deepEqual(answer.body, {
        ...before,
        ...body,
        status: 'pending',
        identity: {
          id: identity.id,
          provider: answer.body.mta_provider,
          state: 'registering',
          selector: identity.selector,
          registered_at: null,
        },
        dns_records,
        verified_at: null,
        last_checked_at: null,
        last_check_error: null,
        updated_at,
      })
      assert.ok(identity.id > before.identity.id)
      assert.ok(updated_at > before.updated_at)
      assert.equal(answer.headers.get('etag'), '"2"')
      assert.deepEqual(await show(before), answer.body)

      const values = (records: { value: string; purpose: string }[]) =>
        records.filter(({ purpose }) => ['ownership', 'dkim'].includes(purpose)).map(({ value }) => value)
      for (const value of values(before.dns_records)) assert.ok(!values(dns_records).includes(value), value)
      for (const record of dns_records) {
        assert.equal(record.status, 'pending')
        assert.ok(record.name.endsWith(answer.body.name), record.name)
      }
      assert.deepEqual(
        (await identities(before.project_id)).map(({ id, state, is_living, is_due }) => [
          id,
          state,
          is_living,
          is_due,
        ]),
        [
          [before.identity.id, 'retiring', false, true],
          [identity.id, 'registering', true, true],
        ],
      )
      assert.deepEqual((await jobs('identities.reconcile')).slice(-2), [
        { identity_id: before.identity.id },
        { identity_id: identity.id },
      ])
      await assertAudited(answer, {
        operation: 'domains.edit',
        project_id: before.project_id,
        resource: ['domain', before.id],
        before: keptOfDomain(before),
        after: keptOfDomain(answer.body),
      })
    })
  }

  test('keeps the key of the old identity, which still signs accepted mail', async () => {
    const before = await makeVerified()
    const after = (await edit(before, { name: 'moved.example.com' })).body
    const [old] = await keys(before.identity.id)
    const [fresh] = await keys(after.identity.id)
    assert.deepEqual([old?.state, old?.sealed !== null], ['active', true])
    assert.deepEqual([fresh?.state, fresh?.selector], ['pending', after.identity.selector])
    assert.notEqual(fresh?.selector, old?.selector)
  })

  test('restarts the schedule of DNS checks', async () => {
    const before = await makeVerified()
    const editedAfter = await databaseNow(database)
    await edit(before, { mta_provider: 'service' })
    const [row] = await database.query(
      'select next_check_at, checks_failed, failing_since >= $2 as is_new from control.domains where id = $1',
      [before.id, editedAfter],
    )
    assert.deepEqual(row, { next_check_at: null, checks_failed: 0, is_new: true })
  })

  test('back and forth leaves one live identity and retires all previous ones', async () => {
    const before = await makeVerified('ses', 'there.example.com')
    for (const name of ['back.example.com', 'there.example.com', 'back.example.com', 'there.example.com']) {
      assert.equal((await edit(before, { name })).status, 200)
    }
    const rows = await identities(before.project_id)
    assert.deepEqual(
      rows.map(({ is_living }) => is_living),
      [false, false, false, false, true],
    )
    assert.equal(rows.at(-1)?.name, 'there.example.com')
  })

  test('accepts a Unicode name and stores it in its DNS form', async () => {
    const domain = await makeVerified()
    assert.equal((await edit(domain, { name: 'Bücher.EXAMPLE.' })).body.name, 'xn--bcher-kva.example')
  })

  test('records an optional reason', async () => {
    const before = await makeVerified('ses')
    const reason = 'The customer moved'
    const answer = await edit(before, { mta_provider: 'ses', reason })
    await assertAudited(answer, {
      operation: 'domains.edit',
      project_id: before.project_id,
      resource: ['domain', before.id],
      reason,
      before: keptOfDomain(before),
      after: keptOfDomain(answer.body),
    })
  })

  test('leaves one live identity and twenty audit rows for twenty concurrent requests', async () => {
    const before = await makeVerified('ses')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => edit(before, { name: `at-once-${n}.example.com` })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const last = answers.find(({ headers }) => headers.get('etag') === '"21"') ?? assert.fail()
    assert.deepEqual(await show(before), last.body)
    const rows = await identities(before.project_id)
    assert.deepEqual(
      rows.filter(({ is_living }) => is_living).map(({ id }) => id),
      [last.body.identity.id],
    )
    assert.equal(rows.length, 21)
    const audited = await database.query(
      `select from control.audit where operation = 'domains.edit' and project_id = $1`,
      [before.project_id],
    )
    assert.equal(audited.length, 20)
  })
})

describe('domains.edit rejects', () => {
  async function assertRefused(domain: Domain, body: object, status: number, error: string): Promise<Answer> {
    const before = await show(domain)
    const answer = await edit(domain, body)
    assertProblem(answer, status, error as never)
    await assertNotAudited(answer)
    assert.deepEqual(await show(domain), before)
    return answer
  }

  test('a body with neither name nor provider', async () => {
    const domain = await makeVerified()
    for (const body of [
      {},
      { reason: 'Why not' },
      { preserve_local_parts: true },
      { route_replacements: [] },
    ]) {
      const answer = await assertRefused(domain, body, 422, 'validation_failed')
      assert.match(answer.body.message, /"name".*"mta_provider"/)
    }
  })

  test('an invalid name, an unknown provider, and read-only fields', async () => {
    const domain = await makeVerified()
    for (const body of [
      { name: 'co.uk' },
      { name: '127.0.0.1' },
      { name: '' },
      { name: null },
      { mta_provider: 'postfix' },
      { mta_provider: null },
      { name: 'new.example.com', status: 'verified' },
      { name: 'new.example.com', dns_records: [] },
      { name: 'new.example.com', preserve_local_parts: 'yes' },
      { name: 'new.example.com', route_replacements: {} },
      { name: 'new.example.com', route_replacements: [{ route_id: 1 }] },
      { name: 'new.example.com', route_replacements: [{ route_id: '1', address: 'a@new.example.com' }] },
      { name: 'new.example.com', route_replacements: [{ route_id: 1, address: 'a@x.example', extra: 1 }] },
    ]) {
      await assertRefused(domain, body, 422, 'validation_failed')
    }
  })

  test("the name of another of the project's domains", async () => {
    const domain = await makeVerified()
    const other = await makeDomain(domain.project_id, { name: 'other.example.com' })
    await assertRefused(domain, { name: 'OTHER.example.com.' }, 409, 'already_exists')
    assert.equal(
      (await edit(other, { name: 'other.example.com' })).status,
      200,
      'the same domain is not another domain',
    )
  })

  test('the service MTAs for a project that is not allowed to use them, even if nothing else changes', async () => {
    const domain = await makeVerified('ses')
    await assertRefused(domain, { mta_provider: 'service' }, 422, 'provider_not_allowed')
    const own = await makeVerified('service')
    await admin.patch(`/projects/${own.project_id}`, { allow_service_mta: false, reason: 'Ended' })
    await assertRefused(own, { name: 'still.example.com' }, 422, 'provider_not_allowed')
    assert.equal((await edit(own, { mta_provider: 'ses' })).status, 200)
  })

  test('a stale version', async () => {
    const domain = await makeVerified()
    const stale = await edit(domain, { name: 'stale.example.com' }, { 'if-match': '"7"' })
    assertProblem(stale, 412, 'stale_resource')
    assert.equal((await edit(domain, { name: 'fresh.example.com' }, { 'if-match': '"1"' })).status, 200)
  })

  test("another project's domain with the same 404 as a missing one", async () => {
    const domain = await makeVerified()
    const other = await makeProject()
    for (const stranger of [
      { ...domain, project_id: other.id },
      { ...domain, project_id: 999_999_999 },
      { ...domain, id: 999_999_999 },
    ]) {
      const answer = await edit(stranger, { name: 'stolen.example.com' })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(domain), domain)
  })
})

describe('domains.edit as a dry run', () => {
  test('describes all effects, and changes nothing', async () => {
    const domain = await makeVerified('service', 'old.example.com')
    const keyId = await boundKey(domain)
    await queueMail(domain.project_id, domain.identity.id, 7)
    await queueMail(domain.project_id, domain.identity.id + 1000, 5)
    const before = [
      await show(domain),
      await identities(domain.project_id),
      await jobs('identities.reconcile'),
    ]
    const { identity, dns_records, verified_at, last_checked_at, last_check_error } = await show(domain)
    const preview = await dryRun(domain, { name: 'new.example.com' })
    assert.equal(preview.status, 200, preview.text)
    assert.deepEqual(preview.body, {
      operation: 'domains.edit',
      reason_required: false,
      changes: [
        change('name', 'old.example.com', 'new.example.com'),
        change('status', 'verified', 'pending'),
        change('identity', identity, {
          ...{ id: null, provider: 'service', state: 'registering', selector: null, registered_at: null },
        }),
        change('dns_records', dns_records, null),
        change('verified_at', verified_at, null),
        ...(last_checked_at === null ? [] : [change('last_checked_at', last_checked_at, null)]),
        ...(last_check_error === null ? [] : [change('last_check_error', last_check_error, null)]),
      ],
      effects: [
        'Mail from old.example.com is rejected.',
        'Mail from new.example.com is rejected until its new records are verified.',
        'Messages still queued under the current identity: 7. They are signed with it and sent; leave its DKIM record published until then.',
        `Then the current identity ${domain.identity.id} is deregistered with "service", unless the name is still in use there.`,
        'Inbound mail for old.example.com is rejected.',
        'An identity for new.example.com with a new DKIM key is created. Postern signs its mail.',
        'Record to publish: TXT _postern.new.example.com (ownership).',
        'Record to publish: TXT <selector>._domainkey.new.example.com (dkim).',
        'Record to publish: CNAME bounces.new.example.com (return_path).',
        'Record to publish: MX new.example.com (mx, only for inbound mail).',
        'Record to publish: TXT _dmarc.new.example.com (dmarc, recommended).',
      ],
      warnings: [`API keys bound to this domain cannot send until it is verified: ${keyId}.`],
    })
    assert.deepEqual(
      [await show(domain), await identities(domain.project_id), await jobs('identities.reconcile')],
      before,
    )
    function change(field: string, was: unknown, will: unknown) {
      return { resource: 'domain', id: domain.id, field, before: was, after: will }
    }
  })

  test('lists each route that changes, with both addresses', async () => {
    const domain = await makeVerified('ses', 'routed.example.com')
    const { addressRoute, catchAll } = domainRows(database)
    const info = await addressRoute(domain, 'info@routed.example.com')
    const asleep = await addressRoute(domain, 'asleep@routed.example.com', { isActive: false })
    await catchAll(domain)
    const before = await routes(domain.id)
    const { body } = await dryRun(domain, { name: 'rerouted.example.com', preserve_local_parts: true })
    assert.deepEqual(body.effects.slice(4, 7), [
      `Route ${info} receives mail for info@rerouted.example.com instead of info@routed.example.com.`,
      `Route ${asleep} receives mail for asleep@rerouted.example.com instead of asleep@routed.example.com.`,
      'Inbound mail for routed.example.com is rejected.',
    ])
    assert.deepEqual(
      body.changes.filter(({ resource }: { resource: string }) => resource === 'route'),
      [
        {
          resource: 'route',
          id: info,
          field: 'address',
          before: 'info@routed.example.com',
          after: 'info@rerouted.example.com',
        },
        {
          resource: 'route',
          id: asleep,
          field: 'address',
          before: 'asleep@routed.example.com',
          after: 'asleep@rerouted.example.com',
        },
      ],
    )
    assert.deepEqual(await routes(domain.id), before)
  })

  test('warns if nothing changes except that verification is reset', async () => {
    const domain = await makeVerified('ses', 'equal.example.com')
    const same = { name: 'Equal.example.com', mta_provider: 'ses' }
    assert.deepEqual((await dryRun(domain, same)).body.warnings, [
      'The name and provider do not change: this only registers the domain again and resets its verification.',
    ])
    const elsewhere = await dryRun(domain, { name: 'unequal.example.com' })
    assert.deepEqual(elsewhere.body.warnings, [])
    assert.match(
      elsewhere.body.effects.join('\n'),
      /queued under the current identity: 0\. They are signed with it and sent\.\n/,
    )
  })

  test('warns that the new name is verified in another project', async () => {
    const holder = await makeVerified('ses', 'held.example.com')
    const domain = await makeVerified('ses')
    assert.deepEqual((await dryRun(domain, { name: 'held.example.com' })).body.warnings, [
      `held.example.com is verified in project ${holder.project_id} and cannot be verified in another project at the same time.`,
    ])
  })

  test('limits the count of queued mail', async () => {
    const domain = await makeVerified('ses')
    await queueMail(domain.project_id, domain.identity.id, 10_001)
    const { body } = await dryRun(domain, { mta_provider: 'ses' })
    assert.match(body.effects[1], /: more than 10000\. They are signed with it and sent; leave/)
  })
})
