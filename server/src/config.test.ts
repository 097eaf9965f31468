import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from './config.ts'
import { UsageError } from './platform/errors.ts'

const usable = {
  POSTERN_DATABASE_URL: 'postgres://postern:hunter2-hunter2@db.example.com/postern',
  POSTERN_PUBLIC_URL: 'https://mail.example.com',
  POSTERN_AUTH_SECRETS: `2:${'b'.repeat(32)}, 1:${'a'.repeat(32)}`,
  POSTERN_MASTER_KEYS: `2:${'b'.repeat(64)}, 1:${'a'.repeat(64)}`,
}

const complaints = (env: Record<string, string>, readFile?: (path: string) => string): string[] => {
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
  test('takes what is set and fills in the rest', () => {
    const config = loadConfig(usable)
    assert.equal(config.publicUrl.origin, 'https://mail.example.com')
    assert.deepEqual(
      config.authSecrets.map(({ version }) => version),
      [2, 1],
    )
    assert.equal(
      config.databaseOwnerUrl,
      config.databaseUrl,
      'the owner is the same login unless another is named',
    )
    assert.equal(config.port, 8080)
    assert.deepEqual(config.oidcIssuers, [])
    assert.deepEqual(config.trustedProxies, [])
  })

  test('reports every mistake at once, each in a sentence that names the variable', () => {
    const found = complaints({
      POSTERN_PUBLIC_URL: 'http://mail.example.com',
      POSTERN_HTTP_PORT: '99999',
      POSTERN_LOG_LEVEL: 'loud',
      POSTERN_TRUSTED_PROXIES: '10.0.0.0/8, here',
      POSTERN_AUTH_SECRETS: '1:short',
      POSTERN_MASTER_KEYS: `1:${'g'.repeat(64)}`,
      POSTERN_OIDC_ISSUERS: '[{"issuer":"https://id.example.com"}]',
    })
    assert.deepEqual(found, [
      'POSTERN_DATABASE_URL is not set. Address of the PostgreSQL database, as the application logs in: postgres://user:password@host/database',
      'POSTERN_PUBLIC_URL must begin with https:// (http:// is for localhost alone)',
      'POSTERN_HTTP_PORT must be a whole number from 0 to 65535, not "99999"',
      'POSTERN_TRUSTED_PROXIES must list addresses or networks such as 10.0.0.0/8; "here" is neither',
      'POSTERN_AUTH_SECRETS must be version:secret pairs with secrets of at least 32 characters, such as 1:8c41…',
      'POSTERN_MASTER_KEYS must be name:key pairs with keys of 64 hexadecimal digits, such as 1:8c41…',
      'POSTERN_OIDC_ISSUERS is not as expected at "/0": must have required properties audience, jwks_url',
      'POSTERN_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    ])
  })

  test('refuses a mistyped variable and names the one that was meant', () => {
    assert.deepEqual(complaints({ ...usable, POSTERN_HTTP_PROT: '8081' }), [
      'POSTERN_HTTP_PROT is not a setting of Postern; did you mean POSTERN_HTTP_PORT?',
    ])
  })

  test('takes no offence at what Kubernetes sets for a Service of the same name', () => {
    const injected = {
      POSTERN_SERVICE_HOST: '10.0.0.1',
      POSTERN_PORT: 'tcp://10.0.0.1:80',
      POSTERN_PORT_80_TCP: 'x',
    }
    assert.deepEqual(complaints({ ...usable, ...injected }), [])
  })

  test('keeps the start-up options of a database connection to itself', () => {
    const url = `${usable.POSTERN_DATABASE_URL}?sslmode=require&options=-c%20role%3Dx`
    assert.match(complaints({ ...usable, POSTERN_DATABASE_URL: url }).join(), /must not set "options"/)
  })

  test('takes an empty variable for one that is not set', () => {
    assert.equal(loadConfig({ ...usable, POSTERN_HTTP_PORT: '' }).port, 8080)
  })

  test('reads a secret from a file, and from one place only', () => {
    const { POSTERN_AUTH_SECRETS, ...rest } = usable
    const file = { ...rest, POSTERN_AUTH_SECRETS_FILE: '/run/secrets/auth' }
    assert.equal(loadConfig(file, () => `${POSTERN_AUTH_SECRETS}\n`).authSecrets.length, 2)
    assert.deepEqual(
      complaints({ ...usable, ...file }, () => ''),
      ['POSTERN_AUTH_SECRETS and POSTERN_AUTH_SECRETS_FILE are both set; keep one of them'],
    )
    assert.deepEqual(
      complaints(file, () => {
        throw new Error('no such file')
      }),
      ['POSTERN_AUTH_SECRETS cannot be read from POSTERN_AUTH_SECRETS_FILE: no such file'],
    )
    assert.equal(
      complaints({ ...usable, POSTERN_HTTP_PORT_FILE: '/x' }).length,
      1,
      'only secrets come from files',
    )
  })

  test('never repeats a secret in a complaint', () => {
    const found = complaints({
      POSTERN_DATABASE_URL: 'mysql://postern:canary-password@db',
      POSTERN_AUTH_SECRETS: 'canary-secret',
      POSTERN_MASTER_KEYS: 'canary:key',
      POSTERN_PUBLIC_URL: 'canary-url',
    })
    assert.equal(found.length, 4)
    assert.ok(!found.join().includes('canary'))
  })

  test('accepts outside issuers with https key sets, each once', () => {
    const issuer = {
      issuer: 'https://id.example.com',
      audience: 'postern',
      jwks_url: 'https://id.example.com/jwks',
    }
    const of = (...issuers: unknown[]) => ({ ...usable, POSTERN_OIDC_ISSUERS: JSON.stringify(issuers) })
    assert.deepEqual(loadConfig(of(issuer)).oidcIssuers, [issuer])
    assert.match(complaints(of(issuer, issuer)).join(), /the same issuer twice/)
    assert.match(complaints(of({ ...issuer, jwks_url: 'http://id.example.com/jwks' })).join(), /https/)
    assert.match(complaints(of({ ...issuer, secret: 'x' })).join(), /POSTERN_OIDC_ISSUERS is not as expected/)
    assert.match(complaints(of({ ...issuer, issuer: 'https://mail.example.com' })).join(), /our own/)
  })
})
