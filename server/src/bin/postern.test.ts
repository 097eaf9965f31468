import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect, isDeepStrictEqual } from 'node:util'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { emptyDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern, program } from '../testing/harness/postern-process.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { SmtpClient } from '../testing/peers/smtp-client.ts'

/**
 * The command as an operator runs it: with real processes and one database, from an empty database to a running
 * service.
 */
const database = await emptyDatabase()

const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_DATABASE_OWNER_URL: database.superuserUrl,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_HTTP_PORT: '0',
  POSTERN_BOUNCE_PORT: '0',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-command-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}

interface Running {
  child: ChildProcess
  lines: string[]
  /** The log line with this message, once it is written. */
  said(msg: string): Promise<Record<string, unknown>>
}

/** Starts a serving command and collects its log. */
function start(command: string): Running {
  const child = spawn(process.execPath, [program, command], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  cleanUp(async () => void child.kill('SIGKILL'))
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => void lines.push(line))
  return {
    child,
    lines,
    said: (msg) =>
      eventually(`${command} says "${msg}"`, () => {
        const found = lines.map((line) => JSON.parse(line)).find((line) => line.msg === msg)
        if (!found && child.exitCode !== null) throw new Error(`${command} ended: ${lines.join('\n')}`)
        return found
      }),
  }
}

/** Starts `postern api`, or another command that serves HTTP, and waits for its address. */
async function serve(command = 'api'): Promise<Running & { url: string }> {
  const running = start(command)
  const { addresses } = (await running.said('serving')) as { addresses: { port: number }[] }
  return { ...running, url: `http://127.0.0.1:${addresses[0]?.port}` }
}

async function stopped({ child, lines }: Running): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null], lines.join('\n'))
  assert.match(lines.join(''), /"msg":"stopping".*"msg":"stopped"/s)
}

/** Runs a command on a terminal created by script(1), and responds to its prompt. */
async function atTerminal(answer: string, ...args: string[]): Promise<{ status: number; shown: string }> {
  const line = [process.execPath, program, ...args].join(' ')
  const child = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    env: { ...env, SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.on('data', (chunk) => {
    shown += chunk
    if (String(chunk).includes('[y/N]')) child.stdin.write(`${answer}\n`)
  })
  const [status] = await once(child, 'close')
  return { status, shown }
}

const isReady = (url: string) =>
  eventually('the API is ready', async () => (await fetch(`${url}/readyz`)).status === 200)

describe('postern', () => {
  test('lists the commands, and suggests the nearest one for a mistyped command', async () => {
    const plain = await callPostern(env)
    assert.equal(plain.status, 0)
    assert.match(
      plain.stdout,
      /all .*\n.*api .*\n.*worker .*\n.*intake .*\n.*signer .*\n.*migrate .*\n.*admin .*\n.*users .*\n.*token /,
    )
    const unknown = await callPostern(env, 'fly')
    assert.equal(unknown.status, 2)
    assert.equal(unknown.stderr, 'Unknown command "fly".\nRun `postern --help` for a list of commands.\n')
    assert.match(
      (await callPostern(env, 'quee', 'show')).stderr,
      /^Unknown command "quee"\. Did you mean "queue"\?\n/,
    )
  })

  test('reports every mistake in the configuration, without a stack trace', async () => {
    const { status, stderr } = await callPostern({ ...bareEnvironment, POSTERN_HTTP_PORT: 'x' }, 'api')
    assert.equal(status, 2)
    assert.match(stderr, /POSTERN_DATABASE_URL is not set/)
    assert.match(stderr, /POSTERN_HTTP_PORT must be a whole number/)
    assert.ok(!stderr.includes('    at '))
  })

  test('prints a hint for an external error, without a stack trace', async () => {
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
      [['migrate'], down, /Check that PostgreSQL is running/],
      [['token', '--email', 'a@example.com'], down, /Check that PostgreSQL is running/],
      [['migrate'], missing, /does not exist\. Create it first/],
      [['admin', 'create', '--email', 'a@example.com'], missing, /does not exist\. Create it first/],
      [['token', '--email', 'a@example.com'], env, /postern migrate/],
      [['api'], { ...env, POSTERN_HTTP_HOST: '192.0.2.1' }, /not an address of this machine/],
      [['intake'], { ...env, POSTERN_INTAKE_HOST: '192.0.2.1' }, /not an address of this machine/],
    ]
    for (const [args, environment, message] of cases) {
      const { status, stderr } = await callPostern(environment, ...args)
      assert.equal(status, 1, args.join(' '))
      assert.match(stderr, message)
      assert.ok(!stderr.includes('    at '), stderr)
    }
  })

  test('api is alive but not ready before the database is migrated', async () => {
    const { child, url } = await serve()
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })

  test('worker and all wait until the database is migrated, and can be stopped meanwhile', async () => {
    const early = [start('worker'), await serve('all')]
    for (const running of early) {
      await running.said('the database is not ready: is it running, and has `postern migrate` been run?')
      await stopped(running)
    }
  })

  test('migrate, admin create and token give an administrator access to the API', async () => {
    const early = start('worker')
    await early.said('the database is not ready: is it running, and has `postern migrate` been run?')
    const { databases } = JSON.parse((await callPostern(env, 'migrate', '--plan', '--json')).stdout)
    const [{ name, plan }] = databases
    assert.deepEqual([databases.length, name], [1, null])
    assert.deepEqual(plan[0], {
      name: '000001_foundation',
      about:
        'Schemas, the clock, the shard function, identifiers, row-level security, append-only tables and text search.',
    })
    assert.ok(plan.every(({ about }: { about: string }) => /^[A-Z].*\.$/.test(about)))
    const declined = await atTerminal('n', 'migrate')
    assert.equal(declined.status, 1)
    assert.match(declined.shown, /000001_foundation {2}Schemas, .*Apply them now\?.*Nothing was changed/s)
    assert.equal((await database.query(`select from pg_namespace where nspname = 'control'`)).length, 0)
    const agreed = await atTerminal('y', 'migrate')
    assert.equal(agreed.status, 0, agreed.shown)
    assert.match(agreed.shown, /\[#*\.*\] \d+ of \d+ migrations/, 'a terminal shows the progress')
    assert.match(agreed.shown, /applied 000001_foundation/)
    const again = await callPostern(env, 'migrate')
    assert.deepEqual(again, { status: 0, stdout: 'The database is up to date.\n', stderr: '' })
    assert.deepEqual(JSON.parse((await callPostern(env, 'migrate', '--json')).stdout), {
      databases: [{ name: null, plan: [], notes: [], applied: [] }],
    })
    await early.said('working')
    await stopped(early)

    for (const email of [
      'root@localhost',
      'a..b@example.com',
      'you@example.com.',
      `${'a'.repeat(250)}@example.com`,
    ]) {
      assert.match(
        (await callPostern(env, 'admin', 'create', '--email', email)).stderr,
        /not an email address/,
      )
    }
    const king = await callPostern(env, 'admin', 'create', '--email', 'ada@example.com', '--rights', 'king')
    assert.deepEqual([king.status, /full, support, billing, auditor/.test(king.stderr)], [2, true])
    const created = await callPostern(env, 'admin', 'create', '--email', 'Ada@Example.com')
    assert.equal(created.status, 0, created.stderr)
    assert.match(
      created.stdout,
      /password {6}\S{20}\n.*otpauth:\/\/totp\/Postern:ada%40example\.com\?secret=/s,
    )
    const twice = await callPostern(env, 'admin', 'create', '--email', 'ada@example.com')
    assert.equal(twice.status, 2)
    assert.match(twice.stderr, /postern admin reset/)

    const drawn = await callPostern(env, 'token', '--email', 'ada@example.com', '--json')
    const { token: stdout, expires_in } = JSON.parse(drawn.stdout)
    assert.equal(expires_in, 600)
    const { child, url } = await serve()
    const call = (token: string) =>
      fetch(`${url}/v1/admin/x`, { headers: { authorization: `Bearer ${token}` } })
    // The API responds before its job queue is ready. On a busy machine, the queue needs a moment to start.
    await isReady(url)
    assert.equal((await call(stdout.trim())).status, 404)

    const reset = await callPostern(env, 'admin', 'reset', '--email', 'ada@example.com', '--json')
    assert.equal(reset.status, 0, reset.stderr)
    const { password, totp_uri, backup_codes } = JSON.parse(reset.stdout)
    assert.ok(
      !created.stdout.includes(password) && totp_uri.startsWith('otpauth://') && backup_codes.length > 0,
    )
    assert.equal((await call(stdout.trim())).status, 401, 'a reset revokes earlier tokens')

    const unknownUser = await callPostern(env, 'token', '--email', 'nobody@example.com')
    assert.equal(unknownUser.status, 2)
    assert.match(unknownUser.stderr, /not an administrator/)
    child.kill('SIGTERM')
    await once(child, 'exit')
  })

  test('admin link links an external login to one user, and admin unlink removes the link', async () => {
    const link = (email: string) =>
      callPostern(
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
    assert.equal((await link('ada@example.com')).status, 0, 'linking twice is harmless')
    assert.equal((await link('nobody@example.com')).status, 2)
    await callPostern(env, 'admin', 'create', '--email', 'bob@example.com')
    assert.match((await link('bob@example.com')).stderr, /linked to another user/)
    const unlink = (email: string) =>
      callPostern(
        env,
        ...['admin', 'unlink', '--email', email, '--issuer', 'https://id.example.com', '--subject', 'abc'],
      )
    assert.match((await unlink('bob@example.com')).stderr, /is not linked to bob@example\.com/)
    assert.equal((await unlink('ada@example.com')).status, 0)
    assert.equal((await unlink('ada@example.com')).status, 2)
    assert.equal((await link('bob@example.com')).status, 0)
  })

  test('api finishes in-flight requests on SIGTERM, accepts no new ones and exits with 0', async () => {
    const { child, url, lines, said } = await serve()
    const exited = once(child, 'exit')
    const body = JSON.stringify({ email: 'nobody@example.com', password: 'whatever' })
    const request = http.request(`${url}/v1/auth/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' },
    })
    // Once the server asks for the body, it has started to process the request, and a shutdown waits for that request.
    request.flushHeaders()
    await once(request, 'continue')
    child.kill('SIGTERM')
    await said('stopping')
    request.end(body)
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(answer.statusCode, 401)
    assert.equal(answer.headers.connection, 'close')
    answer.resume()
    assert.deepEqual(await exited, [0, null])
    assert.match(lines.join(''), /"msg":"stopping".*"msg":"stopped"/s)
    await assert.rejects(fetch(`${url}/healthz`))
  })

  test('api responds to one more request on a keep-alive connection after SIGTERM', async () => {
    const askAfterSigterm = async () => {
      const { child, url, said } = await serve()
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      const ask = async () => {
        const request = http.get(`${url}/healthz`, { agent })
        const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
        await once(answer.resume(), 'end')
        return [request.reusedSocket, answer.statusCode, answer.headers.connection]
      }
      await ask()
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await said('stopping')
      const answer = await ask().catch((error: Error) => error.message)
      assert.deepEqual(await exited, [0, null])
      return answer
    }
    // The API keeps the connection open for one second. On a busy machine the test can miss that period, but not on
    // every attempt.
    const answers: unknown[] = []
    const expected = [true, 200, 'close']
    while (answers.length < 5 && !isDeepStrictEqual(answers.at(-1), expected))
      answers.push(await askAfterSigterm())
    assert.deepEqual(answers.at(-1), expected, inspect(answers))
  })

  test('worker signs audit checkpoints, api does not', async () => {
    const countCheckpoints = async () =>
      (await database.query('select from control.audit_checkpoints')).length
    const before = await countCheckpoints()
    const api = await serve()
    const carol = ['--email', 'carol@example.com', '--rights', 'auditor']
    assert.equal((await callPostern(env, 'admin', 'create', ...carol)).status, 0)
    assert.deepEqual(await database.query(`select email from control.users where rights = 'auditor'`), [
      { email: 'carol@example.com' },
    ])
    await sleep(1500)
    assert.equal(await countCheckpoints(), before)
    const worker = start('worker')
    await worker.said('working')
    await eventually('the worker has signed', async () => (await countCheckpoints()) > before)
    await Promise.all([stopped(worker), stopped(api)])
  })

  test('intake listens, rejects unknown recipients and stops on SIGTERM', async () => {
    const intake = start('intake')
    const { port } = await intake.said('listening for bounces')
    const client = await SmtpClient.open(Number(port))
    await client.say('EHLO client.example')
    await client.say('MAIL FROM:<>')
    assert.match((await client.say('RCPT TO:<nobody@localhost>')) ?? '', /^550 5\.1\.1/)
    await stopped(intake)
    const tls = { POSTERN_INTAKE_TLS_CERTIFICATE: '/nowhere', POSTERN_INTAKE_TLS_KEY: '/nowhere' }
    const { status, stderr } = await callPostern({ ...env, ...tls }, 'intake')
    assert.equal(status, 2)
    assert.match(stderr, /The intake's TLS certificate cannot be used: ENOENT/)
  })

  test('all runs API, worker and intake in one process', async () => {
    const all = await serve('all')
    await all.said('working')
    await all.said('listening for bounces')
    await isReady(all.url)
    const { stdout } = await callPostern(env, 'token', '--email', 'ada@example.com')
    const call = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${all.url}/v1/admin${path}`, {
        method,
        headers: { authorization: `Bearer ${stdout.trim()}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      assert.ok(response.ok, `${method} ${path}: ${response.status}`)
      return response.json() as Promise<{ id: number; identity: { state: string } }>
    }
    const [user] = await database.query<{ id: string }>('select id from control.users order by id limit 1')
    const plan = await call('POST', '/plans', {
      ...{ name: 'Plan', description: 'For tests.', support_level: 'email', billing_product_id: null },
      ...{ max_domains: 1, max_users: 1, max_mails_per_day: 1, max_mails_per_month: 1 },
      ...{ price: 1, is_active: true },
    })
    const owner = { user_id: Number(user?.id), plan_id: plan.id }
    const project = await call('POST', '/projects', { name: 'Project', ...owner })
    await call('PATCH', `/projects/${project.id}`, { allow_service_mta: true, reason: 'Needed' })
    const body = { name: 'mail.example.com', mta_provider: 'service' }
    const domain = await call('POST', `/projects/${project.id}/domains`, body)
    const show = () => call('GET', `/projects/${project.id}/domains/${domain.id}`)
    await eventually('the domain is registered', async () => (await show()).identity.state === 'registered')
    await stopped(all)
  })
})
