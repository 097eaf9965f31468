import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { UsageError } from '../platform/errors.ts'
import { makeCertificate } from '../testing/peers/certificate.ts'
import { loadConfig } from './config.ts'

const usable = {
  POSTERN_DATABASE_URL: 'postgres://postern:hunter2-hunter2@db.example.com/postern',
  POSTERN_PUBLIC_URL: 'https://mail.example.com',
  POSTERN_AUTH_SECRETS: `2:${'b'.repeat(32)}, 1:${'a'.repeat(32)}`,
  POSTERN_MASTER_KEYS: `2:${'b'.repeat(64)}, 1:${'a'.repeat(64)}`,
}

const problemsOf = (env: Record<string, string>, readFile?: (path: string) => string): string[] => {
  try {
    loadConfig(env, readFile)
  } catch (error) {
    assert.ok(error instanceof UsageError)
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.replace(/^ {2}- /, ''))
  }
  return []
}

describe('the configuration', () => {
  test('uses the environment and fills in defaults', () => {
    const config = loadConfig(usable)
    assert.equal(config.publicUrl.origin, 'https://mail.example.com')
    assert.deepEqual(
      config.authSecrets.map(({ version }) => version),
      [2, 1],
    )
    assert.equal(
      config.databaseOwnerUrl,
      config.databaseUrl,
      'the owner login is the same unless another is set',
    )
    assert.equal(config.port, 8080)
    assert.deepEqual(config.oidcIssuers, [])
    assert.deepEqual(config.trustedProxies, [])
    assert.equal(config.sesRegion, undefined, 'SES is not offered unless configured')
    assert.deepEqual(config.dnsServers, [])
    assert.deepEqual(config.mtaHosts, [])
    assert.equal(config.mxHost, 'mail.example.com')
    assert.equal(config.returnPathHost, 'mail.example.com')
    assert.deepEqual([...config.suppressOn], ['5.1.1', '5.1.2', '5.1.6', '5.1.10', '5.2.1'])
  })

  test('reports all mistakes together, each in a sentence that names the variable', () => {
    const found = problemsOf({
      POSTERN_PUBLIC_URL: 'http://mail.example.com',
      POSTERN_HTTP_PORT: '99999',
      POSTERN_LOG_LEVEL: 'loud',
      POSTERN_TRUSTED_PROXIES: '10.0.0.0/8, here',
      POSTERN_AUTH_SECRETS: '1:short',
      POSTERN_MASTER_KEYS: `1:${'g'.repeat(64)}`,
      POSTERN_OIDC_ISSUERS: '[{"issuer":"https://id.example.com"}]',
    })
    assert.deepEqual(found, [
      "POSTERN_DATABASE_URL is not set. URL of the PostgreSQL database, with the application's login: postgres://user:password@host/database",
      'POSTERN_PUBLIC_URL must begin with https:// (http:// is allowed for localhost only)',
      'POSTERN_HTTP_PORT must be a whole number from 0 to 65535, not "99999"',
      'POSTERN_TRUSTED_PROXIES must list addresses or networks such as 10.0.0.0/8; "here" is neither',
      'POSTERN_AUTH_SECRETS must be version:secret pairs with secrets of at least 32 characters, such as 1:8c41…',
      'POSTERN_MASTER_KEYS must be name:key pairs with keys of 64 hexadecimal digits, such as 1:8c41…',
      'POSTERN_OIDC_ISSUERS is not valid at "/0": must have required properties audience, jwks_url',
      'POSTERN_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    ])
  })

  test('rejects a mistyped variable and suggests the right one', () => {
    assert.deepEqual(problemsOf({ ...usable, POSTERN_HTTP_PROT: '8081' }), [
      'POSTERN_HTTP_PROT is not a Postern setting; did you mean POSTERN_HTTP_PORT?',
    ])
  })

  test('ignores the variables that Kubernetes sets for a Service named postern', () => {
    const injected = {
      POSTERN_SERVICE_HOST: '10.0.0.1',
      POSTERN_PORT: 'tcp://10.0.0.1:80',
      POSTERN_PORT_80_TCP: 'x',
    }
    assert.deepEqual(problemsOf({ ...usable, ...injected }), [])
  })

  test('rejects start-up options in a database URL', () => {
    const url = `${usable.POSTERN_DATABASE_URL}?sslmode=require&options=-c%20role%3Dx`
    assert.match(problemsOf({ ...usable, POSTERN_DATABASE_URL: url }).join(), /must not set "options"/)
  })

  test('treats an empty variable as not set', () => {
    assert.equal(loadConfig({ ...usable, POSTERN_HTTP_PORT: '' }).port, 8080)
  })

  test('reads a secret from a file, and from one place only', () => {
    const { POSTERN_AUTH_SECRETS, ...rest } = usable
    const file = { ...rest, POSTERN_AUTH_SECRETS_FILE: '/run/secrets/auth' }
    assert.equal(loadConfig(file, () => `${POSTERN_AUTH_SECRETS}\n`).authSecrets.length, 2)
    assert.deepEqual(
      problemsOf({ ...usable, ...file }, () => ''),
      ['POSTERN_AUTH_SECRETS and POSTERN_AUTH_SECRETS_FILE are both set; remove one of them'],
    )
    assert.deepEqual(
      problemsOf(file, () => {
        throw new Error('no such file')
      }),
      ['POSTERN_AUTH_SECRETS cannot be read from POSTERN_AUTH_SECRETS_FILE: no such file'],
    )
    assert.equal(
      problemsOf({ ...usable, POSTERN_HTTP_PORT_FILE: '/x' }).length,
      1,
      'only secrets come from files',
    )
  })

  test('accepts several KumoMTA tokens, each long enough to be secret and usable in a header', () => {
    const [one, other] = ['a'.repeat(32), '+/='.repeat(20)] as const
    assert.deepEqual(loadConfig(usable).kumomtaTokens, [])
    assert.deepEqual(loadConfig({ ...usable, POSTERN_KUMOMTA_TOKENS: `${one}, ${other}` }).kumomtaTokens, [
      one,
      other,
    ])
    for (const wrong of ['a'.repeat(31), `${one}, short`, `${one} ${one}`, 'ü'.repeat(40)]) {
      assert.deepEqual(problemsOf({ ...usable, POSTERN_KUMOMTA_TOKENS: wrong }), [
        'POSTERN_KUMOMTA_TOKENS must be tokens of at least 32 ASCII characters each, without spaces',
      ])
    }
  })

  test('never repeats a secret in an error message', () => {
    const found = problemsOf({
      POSTERN_DATABASE_URL: 'mysql://postern:canary-password@db',
      POSTERN_AUTH_SECRETS: 'canary-secret',
      POSTERN_MASTER_KEYS: 'canary:key',
      POSTERN_KUMOMTA_TOKENS: `${'a'.repeat(32)}, canary-token`,
      POSTERN_PUBLIC_URL: 'canary-url',
    })
    assert.equal(found.length, 5)
    assert.ok(!found.join().includes('canary'))
  })

  test('assigns every shard to one cell, and finds the cell of the process', () => {
    const [a, b] = [
      { name: 'a', shards: '0-511', url: 'postgres://app:hunter2-hunter2@a.example.com/postern' },
      { name: 'b', shards: '512-1000, 1001-1023' },
    ]
    const of = (...cells: unknown[]) => ({ ...usable, POSTERN_CELLS: JSON.stringify(cells) })
    const { cells } = loadConfig({ ...of(a, b), POSTERN_CELL: 'b' })
    assert.deepEqual(
      cells.map(({ name, shards, url, ownerUrl }) => [name, shards.length, url, ownerUrl]),
      [
        ['a', 512, a.url, a.url],
        ['b', 512, undefined, undefined],
      ],
    )
    assert.deepEqual(loadConfig(usable).cells, [])
    assert.deepEqual(problemsOf({ ...of(a, b), POSTERN_CELL: 'c' }), [
      'POSTERN_CELL is "c", which is not in POSTERN_CELLS',
    ])
    const wrong: [unknown[], RegExp][] = [
      [[a], /has no cell for shard 512/],
      [[a, { ...b, shards: '511-1023' }], /has a shard in two cells/],
      [[a, { ...b, name: 'a' }], /contains the same cell twice/],
      [[{ ...a, url: undefined }, b], /has two cells without "url"/],
      [[a, { ...b, shards: '512-1024' }], /must list shards/],
      [[a, { ...b, shards: '1023-512' }], /must list shards/],
      [[a, { ...b, shards: '' }], /has no shards for cell "b"/],
      [[a, { ...b, name: 'B' }], /is not valid at "\/1\/name"/],
      [[a, { ...b, url: 'mysql://x' }], /must look like postgres/],
    ]
    for (const [given, complaint] of wrong) {
      const found = problemsOf(of(...given)).join()
      assert.match(found, complaint)
      assert.ok(!found.includes('hunter2'), found)
    }
  })

  test('accepts external issuers with HTTPS key sets, each once', () => {
    const issuer = {
      issuer: 'https://id.example.com',
      audience: 'postern',
      jwks_url: 'https://id.example.com/jwks',
    }
    const of = (...issuers: unknown[]) => ({ ...usable, POSTERN_OIDC_ISSUERS: JSON.stringify(issuers) })
    assert.deepEqual(loadConfig(of(issuer)).oidcIssuers, [issuer])
    assert.match(problemsOf(of(issuer, issuer)).join(), /the same issuer twice/)
    assert.match(problemsOf(of({ ...issuer, jwks_url: 'http://id.example.com/jwks' })).join(), /https/)
    assert.match(problemsOf(of({ ...issuer, secret: 'x' })).join(), /POSTERN_OIDC_ISSUERS is not valid/)
    assert.match(
      problemsOf(of({ ...issuer, issuer: 'https://mail.example.com' })).join(),
      /must not contain POSTERN_PUBLIC_URL/,
    )
  })

  test('reads the issuers at which people sign in, and names no secret in a complaint', () => {
    const issuer = {
      ...{ id: 'example', label: 'Example ID', issuer: 'https://id.example.com/realms/staff' },
      ...{ client_id: 'postern', client_secret: 'swordfish' },
    }
    const of = (...issuers: unknown[]) => ({ ...usable, POSTERN_SIGN_IN_ISSUERS: JSON.stringify(issuers) })
    assert.deepEqual(loadConfig(of(issuer)).signInIssuers, [
      {
        ...{ id: 'example', label: 'Example ID', issuer: 'https://id.example.com/realms/staff' },
        ...{ clientId: 'postern', clientSecret: 'swordfish', ca: undefined },
        ...{ secondFactorAcr: [], secondFactorAmr: [], canSignUp: false, privateNetworks: [] },
      },
    ])
    const { POSTERN_SIGN_IN_ISSUERS, ...rest } = of(issuer)
    const inFile = { ...rest, POSTERN_SIGN_IN_ISSUERS_FILE: '/run/secrets/issuers' }
    assert.equal(
      loadConfig(inFile, () => POSTERN_SIGN_IN_ISSUERS).signInIssuers[0]?.clientSecret,
      'swordfish',
    )
    const second = { ...issuer, id: 'second', label: 'Second', issuer: 'https://second.example.com' }
    for (const [issuers, complaint] of [
      [[issuer, { ...second, id: 'example' }], /the same id twice/],
      [[issuer, { ...second, issuer: issuer.issuer }], /the same issuer twice/],
      [[issuer, { ...second, label: 'Example ID' }], /the same label twice/],
      [[{ ...issuer, issuer: 'http://id.example.com' }], /begin with https/],
      [[{ ...issuer, issuer: 'http://localhost:8080' }], /begin with https/],
      [[{ ...issuer, issuer: 'https://id.example.com/?x' }], /without a query/],
      [[{ ...issuer, issuer: 'https://x@id.example.com/' }], /user name/],
      [[{ ...issuer, issuer: 'https://mail.example.com' }], /must not contain POSTERN_PUBLIC_URL/],
      [[{ ...issuer, id: 'Example/..' }], /is not valid at "\/0\/id"/],
      [[{ ...issuer, label: ' ' }], /labels/],
      [[{ ...issuer, client_secret: '' }], /is not valid at "\/0\/client_secret"/],
      [[{ ...issuer, private_networks: ['inside'] }], /addresses or networks/],
      [[{ ...issuer, ca_file: '/nowhere' }], /"ca_file" of example is not a file with certificates/],
      [[{ ...issuer, discovery: false }], /is not valid/],
      [Array.from({ length: 11 }, (_, n) => ({ ...issuer, id: `n${n}` })), /is not valid/],
    ] as const) {
      const problems = problemsOf(of(...issuers)).join()
      assert.match(problems, complaint)
      assert.doesNotMatch(problems, /swordfish/)
    }
    const ofTokens = { issuer: issuer.issuer, audience: 'postern', jwks_url: 'https://id.example.com/keys' }
    assert.match(
      problemsOf({ ...of(issuer), POSTERN_OIDC_ISSUERS: JSON.stringify([ofTokens]) }).join(),
      /must not both contain https:\/\/id\.example\.com\/realms\/staff/,
    )
  })

  test('allows endpoints on public port 443, and where the settings allow more', () => {
    const config = loadConfig(usable)
    assert.deepEqual([config.webhookPorts, config.privateNetworks, config.webhookCa], [[443], [], undefined])
    const { cert, files } = makeCertificate()
    const wider = loadConfig({
      ...usable,
      POSTERN_WEBHOOK_PORTS: '443, 8443',
      POSTERN_PRIVATE_NETWORKS: '10.20.0.0/16, fd00::7',
      POSTERN_WEBHOOK_CA_FILE: files.certificate,
    })
    assert.deepEqual(wider.webhookPorts, [443, 8443])
    assert.deepEqual(wider.privateNetworks, ['10.20.0.0/16', 'fd00::7'])
    assert.equal(wider.webhookCa, cert.toString())
    const [port, network] = problemsOf({
      ...usable,
      POSTERN_WEBHOOK_PORTS: '443, https',
      POSTERN_PRIVATE_NETWORKS: 'inside',
    })
    assert.match(port ?? '', /^POSTERN_WEBHOOK_PORTS must be a whole number/)
    assert.match(network ?? '', /^POSTERN_PRIVATE_NETWORKS must list addresses or networks/)
    assert.match(problemsOf({ ...usable, POSTERN_WEBHOOK_PORTS: ',' }).join(), /at least one port/)
    for (const file of ['/nowhere', files.key]) {
      assert.match(
        problemsOf({ ...usable, POSTERN_WEBHOOK_CA_FILE: file }).join(),
        /^POSTERN_WEBHOOK_CA_FILE is not a file with certificates/,
      )
    }
  })

  test('enables SES if region and account are both set', () => {
    const ses = { POSTERN_SES_REGION: 'us-gov-east-1', POSTERN_SES_ACCOUNT_ID: '012345678901' }
    const config = loadConfig({ ...usable, ...ses, POSTERN_SES_ENDPOINT: 'https://vpce-1.example.com/' })
    assert.equal(config.sesRegion, 'us-gov-east-1')
    assert.equal(config.sesAccountId, '012345678901', 'with its leading zero')
    assert.equal(config.sesEndpoint, 'https://vpce-1.example.com')
    const together = 'POSTERN_SES_REGION and POSTERN_SES_ACCOUNT_ID must both be set, or neither'
    assert.deepEqual(problemsOf({ ...usable, POSTERN_SES_REGION: 'eu-west-1' }), [together])
    assert.deepEqual(problemsOf({ ...usable, POSTERN_SES_ACCOUNT_ID: '012345678901' }), [together])
    assert.deepEqual(problemsOf({ ...usable, POSTERN_SES_ENDPOINT: 'https://vpce-1.example.com' }), [
      'POSTERN_SES_ENDPOINT requires POSTERN_SES_REGION',
    ])
    assert.deepEqual(
      problemsOf({
        ...usable,
        POSTERN_SES_REGION: 'Ireland',
        POSTERN_SES_ACCOUNT_ID: '1234',
        POSTERN_SES_ENDPOINT: 'http://vpce-1.example.com',
      }),
      [
        'POSTERN_SES_REGION must be a region such as eu-west-1, not "Ireland"',
        'POSTERN_SES_ACCOUNT_ID must be twelve digits, not "1234"',
        'POSTERN_SES_ENDPOINT must begin with https:// (http:// is allowed for localhost only)',
      ],
    )
  })

  test('sends through SES if a configuration set and topics are set', () => {
    const region = { POSTERN_SES_REGION: 'eu-west-1', POSTERN_SES_ACCOUNT_ID: '111122223333' }
    const set = { POSTERN_SES_CONFIGURATION_SET: 'postern' }
    const topics = ['arn:aws:sns:eu-west-1:111122223333:postern', 'arn:aws-cn:sns:cn-north-1:111122223333:b']
    const heard = { POSTERN_SES_TOPIC_ARNS: topics.join(', ') }
    const config = loadConfig({
      ...usable,
      ...region,
      ...set,
      ...heard,
      POSTERN_SNS_ENDPOINT: 'https://vpce-2.example.com/',
    })
    assert.deepEqual(
      [config.sesConfigurationSet, config.snsEndpoint],
      ['postern', 'https://vpce-2.example.com'],
    )
    assert.deepEqual(config.sesTopicArns, topics)
    assert.deepEqual(problemsOf({ ...usable, ...set, ...heard }), [
      'POSTERN_SES_CONFIGURATION_SET requires POSTERN_SES_REGION',
    ])
    assert.deepEqual(problemsOf({ ...usable, ...region, ...set }), [
      'POSTERN_SES_CONFIGURATION_SET requires POSTERN_SES_TOPIC_ARNS, to receive delivery events',
    ])
    const bad = [
      'postern',
      'arn:aws:sqs:eu-west-1:111122223333:postern',
      'arn:aws:sns:eu-west-1:1:postern',
      'arn:aws:sns:*:111122223333:x',
    ]
    for (const arn of bad) {
      assert.deepEqual(problemsOf({ ...usable, POSTERN_SES_TOPIC_ARNS: arn }), [
        `POSTERN_SES_TOPIC_ARNS must list topics such as arn:aws:sns:eu-west-1:111122223333:postern; "${arn}" is not one`,
      ])
    }
    assert.deepEqual(problemsOf({ ...usable, POSTERN_SES_CONFIGURATION_SET: 'two words' }), [
      'POSTERN_SES_CONFIGURATION_SET must be the name of a configuration set, not "two words"',
    ])
  })

  test('accepts DNS servers of both families, with and without a port', () => {
    const of = (servers: string) => ({ ...usable, POSTERN_DNS_SERVERS: servers })
    const good = ['192.0.2.53', '192.0.2.53:5353', '2001:db8::53', '[2001:db8::53]:5353']
    assert.deepEqual(loadConfig(of(good.join(', '))).dnsServers, good)
    const bad = [
      'dns.example.com',
      '192.0.2',
      '192.0.2.53:0',
      '192.0.2.53:65536',
      '[192.0.2.53]:53',
      '[::1]:x',
    ]
    for (const server of bad) {
      assert.deepEqual(problemsOf(of(`192.0.2.53, ${server}`)), [
        `POSTERN_DNS_SERVERS must list addresses such as 192.0.2.53 or [2001:db8::53]:5353; "${server}" is not one`,
      ])
    }
  })

  test('accepts bounce codes, or none', () => {
    const of = (codes: string) => ({ ...usable, POSTERN_SUPPRESS_ON: codes })
    assert.deepEqual([...loadConfig(of('5.1.1, 5.7.26')).suppressOn], ['5.1.1', '5.7.26'])
    assert.equal(loadConfig(of('none')).suppressOn.size, 0)
    for (const code of ['4.2.2', '550', '5.1', '5.1.1.1', '5.1.x', 'all']) {
      assert.deepEqual(problemsOf(of(`5.1.1, ${code}`)), [
        `POSTERN_SUPPRESS_ON must list codes such as 5.1.1, or be "none"; "${code}" is not a bounce code`,
      ])
    }
  })

  test('accepts MTA URLs, and never repeats one that may contain a password', () => {
    const of = (hosts: string) => ({ ...usable, POSTERN_MTA_HOSTS: hosts })
    const good = ['smtp://mta1.example.com', 'smtp://a%40b:c%2C@192.0.2.1:587', 'smtps://[2001:db8::25]:465']
    assert.deepEqual(loadConfig(of(good.join(', '))).mtaHosts.map(String), good)
    for (const host of [
      'mta.example.com',
      'mta.example.com:25',
      'http://mta.example.com',
      'smtp://',
      'smtp://a/b',
      'smtp://a?b',
    ]) {
      assert.deepEqual(problemsOf(of(`smtp://mta1.example.com, ${host}`)), [
        'POSTERN_MTA_HOSTS must list URLs such as smtp://mta.example.com:25; one of them is not valid',
      ])
    }
    for (const host of [
      'smtp://user@mta.example.com',
      'smtp://:hunter2@mta.example.com',
      'smtp://a:%zz@mta.example.com',
    ]) {
      assert.deepEqual(problemsOf(of(host)), [
        'POSTERN_MTA_HOSTS must have both a user and a password, percent-encoded, or neither, in each URL',
      ])
    }
  })

  test("requires the intake's certificate and key together", () => {
    const together = 'POSTERN_INTAKE_TLS_CERTIFICATE and POSTERN_INTAKE_TLS_KEY must both be set, or neither'
    const [cert, key] = [{ POSTERN_INTAKE_TLS_CERTIFICATE: '/cert' }, { POSTERN_INTAKE_TLS_KEY: '/key' }]
    assert.deepEqual(problemsOf({ ...usable, ...cert }), [together])
    assert.deepEqual(problemsOf({ ...usable, ...key }), [together])
    assert.deepEqual(problemsOf({ ...usable, ...cert, ...key }), [])
  })

  test('allows submission with TLS only', () => {
    const tls = { POSTERN_INTAKE_TLS_CERTIFICATE: '/cert', POSTERN_INTAKE_TLS_KEY: '/key' }
    for (const name of ['POSTERN_SUBMISSION_PORT', 'POSTERN_SUBMISSIONS_PORT']) {
      assert.equal(problemsOf({ ...usable, [name]: '587' }).length, 1)
      assert.deepEqual(problemsOf({ ...usable, ...tls, [name]: '587' }), [])
      assert.equal(problemsOf({ ...usable, ...tls, [name]: '65536' }).length, 1)
    }
    const { submissionPort, submissionsPort } = loadConfig(usable)
    assert.deepEqual([submissionPort, submissionsPort], [undefined, undefined])
  })

  test('normalises host names as in DNS records', () => {
    const config = loadConfig({
      ...usable,
      POSTERN_MX_HOST: 'MX.Example.com.',
      POSTERN_RETURN_PATH_HOST: 'bounces.example.com',
    })
    assert.equal(config.mxHost, 'mx.example.com')
    assert.equal(config.returnPathHost, 'bounces.example.com')
    for (const name of ['mx', '192.0.2.1', '-mx.example.com', 'mx..example.com', 'mx example.com', '.']) {
      assert.deepEqual(problemsOf({ ...usable, POSTERN_MX_HOST: name }), [
        `POSTERN_MX_HOST must be a host name such as mx.example.com, not "${name}"`,
      ])
    }
  })

  test('accepts MTAs and a sender of system mail, both optional', () => {
    const none = loadConfig(usable)
    assert.deepEqual([none.mtaHosts, none.systemMailFrom, none.customerPlanId], [[], undefined, undefined])
    const config = loadConfig({
      ...usable,
      POSTERN_MTA_HOSTS: 'smtp://mta1.example.com:2525, smtp://[2001:db8::25]',
      POSTERN_SYSTEM_MAIL_FROM: 'postern@example.com',
      POSTERN_CUSTOMER_PLAN_ID: '7',
    })
    assert.deepEqual(
      config.mtaHosts.map(({ hostname, port }) => [hostname, port]),
      [
        ['mta1.example.com', '2525'],
        ['[2001:db8::25]', ''],
      ],
    )
    assert.deepEqual([config.systemMailFrom, config.customerPlanId], ['postern@example.com', 7])
    for (const from of ['postern', 'a@b@c', 'Postern <postern@example.com>']) {
      assert.equal(problemsOf({ ...usable, POSTERN_SYSTEM_MAIL_FROM: from }).length, 1, from)
    }
    for (const plan of ['0', '-1', 'small']) {
      assert.equal(problemsOf({ ...usable, POSTERN_CUSTOMER_PLAN_ID: plan }).length, 1, plan)
    }
  })
})
