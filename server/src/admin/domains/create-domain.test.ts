import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { describe, test } from 'node:test'
import { auditOf, keptOfDomain } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database, {
  POSTERN_MX_HOST: 'mx.postern.test',
  POSTERN_RETURN_PATH_HOST: 'bounces.postern.test',
})
const admin = await signedIn(api)
const { makePlan, makeProject, makeDomain, allowServiceMta } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const { identities, keys, jobs } = domainRows(database)

const reason = 'Agreed with sales'
const create = (projectId: number, body: object = {}) =>
  admin.post(`/projects/${projectId}/domains`, { name: 'mail.example.com', mta_provider: 'ses', ...body })
const countDomains = async (projectId: number): Promise<number> =>
  (await admin.get(`/projects/${projectId}/domains`)).body.data.length
const projectFor = async (max_domains: number) =>
  makeProject({ plan_id: (await makePlan({ max_domains })).id })
const projectWithService = async () => {
  const project = await makeProject()
  await allowServiceMta(project.id)
  return project
}

describe('domains.create', () => {
  test('adds a domain on SES, with DKIM records after its registration', async () => {
    const { id: projectId } = await makeProject()
    const answer = await create(projectId)
    assert.equal(answer.status, 201, answer.text)
    const { id, identity, dns_records, created_at, updated_at } = answer.body
    const token = dns_records[0].value.replace('postern-verification=', '')
    assert.match(token, /^[0-9a-f]{32}$/)
    assert.deepEqual(answer.body, {
      id,
      project_id: projectId,
      name: 'mail.example.com',
      mta_provider: 'ses',
      status: 'pending',
      identity: {
        id: identity.id,
        provider: 'ses',
        state: 'registering',
        selector: null,
        registered_at: null,
      },
      dns_records: [
        record('ownership', 'TXT', '_postern.mail.example.com', `postern-verification=${token}`),
        record('mx', 'MX', 'mail.example.com', '10 mx.postern.test'),
        record('dmarc', 'TXT', '_dmarc.mail.example.com', 'v=DMARC1; p=none'),
      ],
      verified_at: null,
      last_checked_at: null,
      last_check_error: null,
      created_at,
      updated_at,
    })
    assert.equal(updated_at, created_at)
    assert.equal(answer.headers.get('location'), `/v1/admin/projects/${projectId}/domains/${id}`)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.deepEqual((await admin.get(`/projects/${projectId}/domains/${id}`)).body, answer.body)
    await assertAudited(answer, {
      operation: 'domains.create',
      project_id: projectId,
      resource: ['domain', id],
      after: keptOfDomain(answer.body),
    })
    assert.deepEqual(await identities(projectId), [
      {
        id: identity.id,
        domain_id: id,
        name: 'mail.example.com',
        provider: 'ses',
        state: 'registering',
        is_living: true,
        is_due: true,
      },
    ])
    assert.deepEqual((await jobs('identities.reconcile')).at(-1), { identity_id: identity.id })
  })

  test('adds a domain on the service MTAs, with a DKIM key whose private key is never returned', async () => {
    const { id: projectId } = await projectWithService()
    const answer = await create(projectId, { mta_provider: 'service' })
    assert.equal(answer.status, 201, answer.text)
    const { identity, dns_records } = answer.body
    const [ownership, dkim, returnPath] = dns_records
    assert.match(identity.selector, /^postern-[0-9a-f]{8}$/)
    assert.equal(dkim.name, `${identity.selector}._domainkey.mail.example.com`)
    assert.deepEqual(
      dns_records.map(({ purpose }: { purpose: string }) => purpose),
      ['ownership', 'dkim', 'return_path', 'mx', 'dmarc'],
    )
    assert.deepEqual(
      returnPath,
      record('return_path', 'CNAME', 'bounces.mail.example.com', 'bounces.postern.test'),
    )
    assert.equal(ownership.name, '_postern.mail.example.com')

    const [, der = ''] = /^v=DKIM1; k=rsa; p=([A-Za-z0-9+/=]+)$/.exec(dkim.value) ?? []
    const shown = createPublicKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'spki' })
    assert.deepEqual(shown.asymmetricKeyDetails, { modulusLength: 2048, publicExponent: 65_537n })
    const [key] = await keys(identity.id)
    assert.ok(key?.sealed && key.state === 'pending')
    const opened = await api.context.db.admin.read((tx) =>
      api.context.vault.open(
        tx,
        projectId,
        { table: 'control.dkim_keys', column: 'encrypted_private_key', rowId: key.id },
        key.sealed as Buffer,
      ),
    )
    assert.ok(createPublicKey(opened).equals(shown), 'the encrypted key matches the published one')
    const dumped = await database.query(
      `select from control.dkim_keys as kept where kept::text like '%PRIVATE KEY%'
       union all select from control.audit as kept where kept::text like '%PRIVATE KEY%'
       union all select from jobs.job as kept where kept::text like '%PRIVATE KEY%'`,
    )
    assert.deepEqual(dumped, [])
    assert.ok(!api.logLines.join('').includes('PRIVATE KEY'))
    await assertAudited(answer, {
      operation: 'domains.create',
      project_id: projectId,
      resource: ['domain', answer.body.id],
      after: keptOfDomain(answer.body),
    })
  })

  test('stores a name in its DNS form', async () => {
    const { id } = await makeProject()
    const names = {
      'Mail.EXAMPLE.org.': 'mail.example.org',
      'bücher.example': 'xn--bcher-kva.example',
      'shop.co.uk': 'shop.co.uk',
      'shop.github.io': 'shop.github.io',
    }
    for (const [given, stored] of Object.entries(names)) {
      const answer = await create(id, { name: given })
      assert.deepEqual([answer.status, answer.body.name], [201, stored], answer.text)
    }
  })

  test('rejects invalid names and public suffixes', async () => {
    const { id } = await makeProject()
    const suffixes = ['com', 'co.uk', 'github.io', 'localhost']
    const addresses = ['127.0.0.1', '[::1]', '2130706433', '0x7f.1']
    const odd = ['', '.', 'mail..example.com', 'a b.example.com', 'info@example.com', 'a_b.example.com']
    const long = [`${'a'.repeat(64)}.example.com`, `${'a.'.repeat(120)}example.com`, 'x'.repeat(254)]
    for (const name of [...suffixes, ...addresses, ...odd, ...long, 'exa\u0007mple.com', 7, null]) {
      const answer = await create(id, { name, reason })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, /"name"/)
      await assertNotAudited(answer)
    }
    assert.equal(await countDomains(id), 0)
  })

  test('rejects unknown providers and fields', async () => {
    const { id } = await makeProject()
    for (const change of [
      { mta_provider: 'postfix' },
      { mta_provider: 'SES' },
      { mta_provider: null },
      { name: undefined },
      { status: 'verified' },
      { preserve_local_parts: true },
    ]) {
      assertProblem(await create(id, change), 422, 'validation_failed')
    }
  })

  test('allows the service MTAs only for a project that may use them', async () => {
    const { id } = await makeProject()
    const answer = await create(id, { mta_provider: 'service', reason })
    assertProblem(answer, 422, 'provider_not_allowed')
    assert.match(answer.body.message, /"allow_service_mta"/)
    await assertNotAudited(answer)
    await allowServiceMta(id)
    assert.equal((await create(id, { mta_provider: 'service' })).status, 201)
  })

  test('rejects SES if the operator has not configured it', async () => {
    const without = await startApi(database, { POSTERN_SES_REGION: '', POSTERN_SES_ACCOUNT_ID: '' })
    const client = new Client(without.url, await without.tokenOf(admin.email))
    const { id } = await projectWithService()
    const path = `/projects/${id}/domains`
    const answer = await client.post(path, { name: 'mail.example.com', mta_provider: 'ses', reason })
    assertProblem(answer, 422, 'provider_not_allowed')
    assert.match(answer.body.message, /does not offer the provider "ses"/)
    const own = await client.post(path, { name: 'mail.example.com', mta_provider: 'service' })
    assert.equal(own.status, 201, own.text)
    const edited = await client.patch(`${path}/${own.body.id}`, { mta_provider: 'ses' })
    assertProblem(edited, 422, 'provider_not_allowed')
  })

  test('rejects a name that the project already has, in any notation', async () => {
    const { id } = await makeProject()
    await makeDomain(id, { name: 'xn--bcher-kva.example' })
    for (const name of ['xn--bcher-kva.example', 'Bücher.example', 'BÜCHER.example.']) {
      const answer = await create(id, { name, reason })
      assertProblem(answer, 409, 'already_exists')
      assert.match(answer.body.message, /xn--bcher-kva\.example/)
      await assertNotAudited(answer)
    }
    assert.equal(await countDomains(id), 1)
  })

  test('allows a name in many projects, each with its own token', async () => {
    const answers = [
      await create((await makeProject()).id, { name: 'wanted.example.com' }),
      await create((await makeProject()).id, { name: 'wanted.example.com' }),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201],
    )
    const tokens = answers.map(({ body }) => body.dns_records[0].value)
    assert.equal(new Set(tokens).size, 2)
  })

  test('warns in its preview that the name is verified in another project', async () => {
    const holder = await makeProject()
    const held = await makeDomain(holder.id, { name: 'held.example.com' })
    await database.query(
      `update control.domains set status = 'verified', verified_at = now() where id = $1`,
      [held.id],
    )
    const { id } = await makeProject()
    const preview = await admin.post(`/projects/${id}/domains?dry_run=true`, {
      name: 'held.example.com',
      mta_provider: 'ses',
    })
    assert.deepEqual(preview.body.warnings, [
      `held.example.com is verified in project ${holder.id} and cannot be verified in another project at the same time.`,
    ])
    assert.equal((await create(id, { name: 'held.example.com' })).body.status, 'pending')
  })

  test('describes its effects in a preview, and changes nothing', async () => {
    const { id } = await projectFor(1)
    await allowServiceMta(id)
    const before = await jobs('identities.reconcile')
    const preview = await admin.post(`/projects/${id}/domains?dry_run=true`, {
      name: 'mail.example.com',
      mta_provider: 'service',
    })
    assert.equal(preview.status, 200, preview.text)
    assert.deepEqual(preview.body.effects, [
      'An identity for mail.example.com with a new DKIM key is created. Postern signs its mail.',
      'Record to publish: TXT _postern.mail.example.com (ownership).',
      'Record to publish: TXT <selector>._domainkey.mail.example.com (dkim).',
      'Record to publish: CNAME bounces.mail.example.com (return_path).',
      'Record to publish: MX mail.example.com (mx, only for inbound mail).',
      'Record to publish: TXT _dmarc.mail.example.com (dmarc, recommended).',
      'The project will have 1 of 1 domains in its plan.',
    ])
    assert.deepEqual(preview.body.warnings, [])
    assert.equal(preview.body.reason_required, false)
    assert.equal(await countDomains(id), 0)
    assert.deepEqual(await jobs('identities.reconcile'), before)
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await create(999_999_999, { reason }), 404, 'not_found')
  })
})

describe('domains.create: max_domains of the current plan', () => {
  test('rejects a create that would exceed it, and says that a reason is required', async () => {
    const { id } = await projectFor(1)
    assert.equal((await create(id)).status, 201)
    const answer = await create(id, { name: 'second.example.com' })
    assertProblem(answer, 422, 'limit_exceeded')
    assert.match(answer.body.message, /allows 1 .*max_domains.*"reason"/)
    await assertNotAudited(answer)
    assert.equal(await countDomains(id), 1)
    assert.equal((await identities(id)).length, 1)
  })

  test('can be exceeded with a reason, and the audit row records the limit, its value and the count', async () => {
    const { id: projectId } = await projectFor(1)
    await create(projectId)
    for (const count of [2, 3]) {
      const name = `number${count}.example.com`
      const answer = await create(projectId, { name, reason })
      assert.equal(answer.status, 201, answer.text)
      await assertAudited(answer, {
        operation: 'domains.create',
        project_id: projectId,
        resource: ['domain', answer.body.id],
        reason,
        after: keptOfDomain(answer.body),
        limit_exception: { limit: 'max_domains', value: 1, count },
      })
    }
  })

  test('allows another domain after one is deleted', async () => {
    const { id } = await projectFor(1)
    const domain = await makeDomain(id)
    assertProblem(await create(id), 422, 'limit_exceeded')
    await admin.delete(`/projects/${id}/domains/${domain.id}`, { reason })
    assert.equal((await create(id)).status, 201)
  })

  test('is taken from the plan override, if one is set', async () => {
    const { id } = await projectFor(0)
    const larger = await makePlan({ max_domains: 1 })
    await admin.patch(`/projects/${id}`, { admin_plan_id: larger.id, reason })
    assert.equal((await create(id)).status, 201)
    assertProblem(await create(id, { name: 'second.example.com' }), 422, 'limit_exceeded')
  })

  test('is not revealed if the request is rejected anyway', async () => {
    const { id } = await projectFor(1)
    await create(id)
    assertProblem(await create(id), 409, 'already_exists')
    assertProblem(await create(id, { name: 'co.uk' }), 422, 'validation_failed')
    assertProblem(await create(id, { mta_provider: 'service' }), 422, 'provider_not_allowed')
  })
})

describe('domains.create: two concurrent requests', () => {
  const rounds = 15
  const together = (projectId: number, body: object) =>
    Promise.all(['one.example.com', 'two.example.com'].map((name) => create(projectId, { ...body, name })))

  test('for the last domain without reasons: exactly one is rejected', async () => {
    for (let round = 0; round < rounds; round++) {
      const { id } = await projectFor(1)
      const answers = await together(id, {})
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 422])
      assert.equal(await countDomains(id), 1)
    }
  })

  test('for the last domain with reasons: exactly one is an exception', async () => {
    for (let round = 0; round < rounds; round++) {
      const { id } = await projectFor(1)
      const answers = await together(id, { reason })
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 201],
      )
      const rows = await database.query(
        `select limit_exception from control.audit
          where project_id = $1 and operation = 'domains.create' order by seq`,
        [id],
      )
      assert.deepEqual(
        rows.map(({ limit_exception }) => limit_exception),
        [null, { limit: 'max_domains', value: 1, count: 2 }],
      )
    }
  })

  test('for the same name: exactly one succeeds', async () => {
    for (let round = 0; round < rounds; round++) {
      const { id } = await makeProject()
      const answers = await Promise.all([create(id), create(id), create(id)])
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409])
      assert.equal((await identities(id)).length, 1)
    }
  })

  test('one that waits while allow_service_mta is removed is rejected', async () => {
    const { id } = await projectWithService()
    const answer = await holdingBack(
      database,
      `update control.projects set allow_service_mta = false, version = version + 1 where id = ${id}`,
      () => create(id, { mta_provider: 'service' }),
    )
    assertProblem(answer, 422, 'provider_not_allowed')
  })
})

const record = (purpose: string, type: string, name: string, value: string) => ({
  purpose,
  type,
  name,
  value,
  status: 'pending',
})
