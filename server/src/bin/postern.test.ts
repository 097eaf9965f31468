import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cleanUp } from '../testing/cleanup.ts'
import { emptyDatabase } from '../testing/database.ts'

/** The command as an operator runs it: real processes, one database from empty to serving. */
const program = fileURLToPath(new URL('./postern.ts', import.meta.url))

const database = await emptyDatabase()

const env = {
  PATH: process.env['PATH'] ?? '',
  POSTERN_DATABASE_URL: database.url,
  POSTERN_DATABASE_OWNER_URL: database.superuserUrl,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_HTTP_PORT: '0',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-command-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}

interface Outcome {
  status: number
  stdout: string
  stderr: string
}

const postern = (env: Record<string, string>, ...args: string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env }, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code) : 0, stdout, stderr })
    })
  })

/** Starts `postern api` and waits until it says where it serves. */
function serve(): Promise<{ child: ChildProcess; url: string; lines: string[] }> {
  const child = spawn(process.execPath, [program, 'api'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  cleanUp(async () => void child.kill('SIGKILL'))
  const lines: string[] = []
  return new Promise((resolve, reject) => {
    child.on('exit', () => reject(new Error(`the api ended: ${lines.join('\n')}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      const { msg, addresses } = JSON.parse(line)
      if (msg === 'serving') resolve({ child, lines, url: `http://127.0.0.1:${addresses[0].port}` })
    })
  })
}

describe('postern', () => {
  test('without a command, or with an unknown one, says which there are', async () => {
    const plain = await postern(env)
    assert.equal(plain.status, 0)
    assert.match(plain.stdout, /all .*\n.*api .*\n.*worker .*\n.*migrate .*\n.*admin .*\n.*token /)
    const unknown = await postern(env, 'fly')
    assert.equal(unknown.status, 2)
    assert.match(unknown.stderr, /There is no command "fly"/)
  })

  test('with an unusable configuration says everything that is wrong, without a stack trace', async () => {
    const { status, stderr } = await postern({ PATH: env.PATH, POSTERN_HTTP_PORT: 'x' }, 'api')
    assert.equal(status, 2)
    assert.match(stderr, /POSTERN_DATABASE_URL is not set/)
    assert.match(stderr, /POSTERN_HTTP_PORT must be a whole number/)
    assert.ok(!stderr.includes('    at '))
  })

  test('says what to do when something outside of it stands in the way, without a stack trace', async () => {
    const elsewhere = (change: (url: URL) => void) => {
      const url = new URL(database.url)
      change(url)
      return { ...env, POSTERN_DATABASE_URL: url.href, POSTERN_DATABASE_OWNER_URL: url.href }
    }
    const down = elsewhere((url) => {
      url.port = '1'
    })
    const missing = elsewhere((url) => {
      url.pathname = '/nowhere'
    })
    const cases: [args: string[], env: Record<string, string>, message: RegExp][] = [
      [['migrate'], down, /Is PostgreSQL running/],
      [['token', '--email', 'a@example.com'], down, /Is PostgreSQL running/],
      [['migrate'], missing, /does not exist\. Create it first/],
      [['admin', 'create', '--email', 'a@example.com'], missing, /does not exist\. Create it first/],
      [['token', '--email', 'a@example.com'], env, /postern migrate/],
      [['api'], { ...env, POSTERN_HTTP_HOST: '192.0.2.1' }, /not an address of this machine/],
    ]
    for (const [args, environment, message] of cases) {
      const { status, stderr } = await postern(environment, ...args)
      assert.equal(status, 1, args.join(' '))
      assert.match(stderr, message)
      assert.ok(!stderr.includes('    at '), stderr)
    }
  })

  test('api is alive but not ready on a database that was not migrated', async () => {
    const { child, url } = await serve()
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })

  test('migrate, admin create and token lead to an administrator at the door', async () => {
    const migrated = await postern(env, 'migrate')
    assert.equal(migrated.status, 0, migrated.stderr)
    assert.match(migrated.stdout, /applied 000001_ground/)
    assert.match((await postern(env, 'migrate')).stdout, /up to date/)

    for (const email of [
      'root@localhost',
      'a..b@example.com',
      'you@example.com.',
      `${'a'.repeat(250)}@example.com`,
    ]) {
      assert.match((await postern(env, 'admin', 'create', '--email', email)).stderr, /not an email address/)
    }
    const created = await postern(env, 'admin', 'create', '--email', 'Ada@Example.com')
    assert.equal(created.status, 0, created.stderr)
    assert.match(
      created.stdout,
      /password {6}\S{20}\n.*otpauth:\/\/totp\/Postern:ada%40example\.com\?secret=/s,
    )
    const twice = await postern(env, 'admin', 'create', '--email', 'ada@example.com')
    assert.equal(twice.status, 2)
    assert.match(twice.stderr, /postern admin reset/)

    const { stdout } = await postern(env, 'token', '--email', 'ada@example.com')
    const { child, url } = await serve()
    const knock = (token: string) =>
      fetch(`${url}/v1/admin/x`, { headers: { authorization: `Bearer ${token}` } })
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
    assert.equal((await knock(stdout.trim())).status, 404)

    const reset = await postern(env, 'admin', 'reset', '--email', 'ada@example.com')
    assert.equal(reset.status, 0, reset.stderr)
    assert.notEqual(reset.stdout, created.stdout)
    assert.equal((await knock(stdout.trim())).status, 401, 'a reset ends the tokens of before')

    const nobody = await postern(env, 'token', '--email', 'nobody@example.com')
    assert.equal(nobody.status, 2)
    assert.match(nobody.stderr, /not an administrator/)
    child.kill('SIGTERM')
    await once(child, 'exit')
  })

  test('admin link pins an outside login to one user', async () => {
    const link = (email: string) =>
      postern(
        env,
        'admin',
        'link',
        '--email',
        email,
        '--issuer',
        'https://id.example.com',
        '--subject',
        'abc',
      )
    assert.equal((await link('ada@example.com')).status, 0)
    assert.equal((await link('ada@example.com')).status, 0, 'twice is no harm')
    assert.equal((await link('nobody@example.com')).status, 2)
    await postern(env, 'admin', 'create', '--email', 'bob@example.com')
    assert.match((await link('bob@example.com')).stderr, /linked to another user/)
  })

  test('api told to stop finishes the requests it has, takes no new ones and exits with 0', async () => {
    const { child, url, lines } = await serve()
    const exited = once(child, 'exit')
    const body = JSON.stringify({ email: 'nobody@example.com', password: 'whatever' })
    const request = http.request(`${url}/v1/auth/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' },
    })
    // The server has begun with the request once it asks for the body, and waits for it while it stops.
    request.flushHeaders()
    await once(request, 'continue')
    child.kill('SIGTERM')
    while (!lines.join('').includes('"msg":"stopping"')) await sleep(20)
    request.end(body)
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(answer.statusCode, 401)
    assert.equal(answer.headers.connection, 'close')
    answer.resume()
    assert.deepEqual(await exited, [0, null])
    assert.match(lines.join(''), /"msg":"stopping".*"msg":"stopped"/s)
    await assert.rejects(fetch(`${url}/healthz`))
  })
})
