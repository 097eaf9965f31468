import { type ChildProcess, type ExecFileException, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cleanUp } from '../harness/cleanup.ts'
import { killOnExit } from '../harness/kill-on-exit.ts'
import { newPartLog } from '../harness/part-logs.ts'
import { steadyPort } from './steady-port.ts'

/**
 * A private Postfix on a loopback port, with the production configuration but for what `overlay` changes, and a queue and
 * a log of its own. On Debian: apt-get install postfix; the installed one is not used and need not run.
 *
 * Mail goes where the options say, never by MX: Postfix asks the resolver of the system, which knows nothing of the
 * zones of a test.
 */
export interface PostfixOptions {
  /** Where mail for anybody goes. */
  sinkPort: number
  /** Asked for there, under STARTTLS: this Postfix is a customer's, and hands all of its mail to a smart host. */
  login?: { user: string; password: string }
  /** Where reports go that it writes. */
  feedbackPort: number
  /** Who waits longer is told so; Postfix itself would never. */
  delayWarningSeconds?: number
  /** Who waits longer is given up. */
  lifetimeSeconds?: number
  /** The same for reports, which are for the feedback port. */
  bounceLifetimeSeconds?: number
  /** Between two tries to deliver a mail. */
  backoffSeconds?: number
  /** Who may hand mail over, if not this machine. */
  neighbours?: string
  /** Further ports of this machine at which it listens, each with settings of its own. */
  doors?: { port: number; settings: Record<string, string> }[]
  /** Where the queue is kept, if it is to be elsewhere: an empty directory. */
  queueDirectory?: string
}

/** As `postqueue -j` tells it. */
export interface QueuedMail {
  queue_name: 'maildrop' | 'hold' | 'incoming' | 'active' | 'deferred'
  queue_id: string
  sender: string
  recipients: { address: string; delay_reason?: string }[]
}

const programs = '/usr/sbin'
const daemons = '/usr/lib/postfix/sbin'
const run = promisify(execFile)

export class Postfix {
  readonly port: number
  readonly #home: string
  #master: ChildProcess | undefined

  private constructor(home: string, port: number) {
    this.#home = home
    this.port = port
  }

  /** For a test file: gone when its tests are over. */
  static async open(options: PostfixOptions): Promise<Postfix> {
    const postfix = await Postfix.keep(options)
    cleanUp(() => postfix.remove())
    return postfix
  }

  /** For whoever removes it in the end. */
  static async keep(options: PostfixOptions): Promise<Postfix> {
    if (userInfo().uid !== 0)
      throw new Error('Only root can start a Postfix, and run the tests that need one')
    const home = await mkdtemp(path.join(tmpdir(), 'postern-postfix-'))
    const postfix = new Postfix(home, await steadyPort())
    try {
      await postfix.#prepare(options)
      await postfix.start()
      return postfix
    } catch (error) {
      await postfix.remove()
      throw error
    }
  }

  async remove(): Promise<void> {
    await this.kill()
    newPartLog('postfix').copyFrom(path.join(this.#home, 'log'))
    await rm(this.#home, { recursive: true, force: true })
  }

  /** It goes on where it left off. */
  async start(): Promise<void> {
    // In a process group of its own: it ends its processes by a signal to all of the group.
    const master = spawn(`${daemons}/master`, ['-c', this.#configuration, '-d'], {
      detached: true,
      stdio: 'ignore',
    })
    killOnExit(master, { isGroup: true })
    this.#master = master
    for (let attempt = 0; attempt < 500 && !hasEnded(master); attempt++) {
      if ((await this.log()).includes(`master[${master.pid}]: daemon started`)) return
      await sleep(10)
    }
    throw new Error(`Postfix did not start:\n${await this.log()}`)
  }

  /** As an operator stops it: what is under way is broken off, and taken up again at the next start. */
  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  /** Without a word, as a power cut does it. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Sends a signal to each of its processes of that name, such as `smtpd`, or to `master`. Returns to how many. */
  async signal(name: string, signal: NodeJS.Signals): Promise<number> {
    const master = this.#master
    if (master?.pid === undefined || hasEnded(master)) return 0
    const family = [master.pid, ...(await childrenOf(master.pid))]
    const named = await Promise.all(family.map(async (pid) => ((await nameOf(pid)) === name ? [pid] : [])))
    for (const pid of named.flat()) process.kill(pid, signal)
    return named.flat().length
  }

  async queue(): Promise<QueuedMail[]> {
    const { stdout } = await this.#tell('postqueue', '-j')
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }

  /** What is queued now is not delivered until it is released. */
  async hold(queueId = 'ALL'): Promise<void> {
    await this.#tell('postsuper', '-h', queueId)
  }

  async release(queueId = 'ALL'): Promise<void> {
    await this.#tell('postsuper', '-H', queueId)
    await this.flush()
  }

  /** What is queued now has reached the end of its lifetime: Postfix gives it up, and reports so. */
  async expire(): Promise<void> {
    await this.#tell('postsuper', '-f', 'ALL')
    await this.flush()
  }

  /** What was deferred is tried now. */
  async flush(): Promise<void> {
    await this.#tell('postqueue', '-f')
  }

  /** What a table answers for a key; empty if it has no entry. Read under this configuration, not that of the host. */
  async lookUp(table: string, key: string): Promise<string> {
    try {
      return (await this.#tell('postmap', '-q', key, table)).stdout.trim()
    } catch (error) {
      // postmap(1): exit status 1 without a word means that there is no entry.
      const { code, stderr } = error as ExecFileException & { stderr: string }
      if (code === 1 && stderr === '') return ''
      throw error
    }
  }

  /** Everything that it logged so far. */
  log(): Promise<string> {
    return readFile(path.join(this.#home, 'log'), 'utf8').catch(() => '')
  }

  get #configuration(): string {
    return path.join(this.#home, 'configuration')
  }

  /** Postfix is particular about who owns what: all but `data` is root's, and the queue it makes itself. */
  async #prepare(options: PostfixOptions): Promise<void> {
    await chmod(this.#home, 0o755)
    for (const name of ['configuration', 'queue', 'data']) await mkdir(path.join(this.#home, name))
    const [user = 0, group = 0] = await postfixIds()
    await chown(path.join(this.#home, 'data'), user, group)
    for (const file of ['main.cf', 'master.cf', 'reports', 'inside'])
      await copyFile(path.join(production, file), path.join(this.#configuration, file))
    for (const [file, from, to] of moves(this.port, options.feedbackPort))
      await replaceIn(path.join(this.#configuration, file), from, to)
    const settings = Object.entries(overlay(this.#home, options))
    await this.#tell('postconf', '-e', ...settings.map(([name, value]) => `${name}=${value}`))
    for (const door of options.doors ?? [])
      await appendFile(path.join(this.#configuration, 'master.cf'), doorText(door))
    await this.#tell('postfix', 'check')
  }

  #tell(program: string, ...args: string[]): Promise<{ stdout: string }> {
    return run(`${programs}/${program}`, ['-c', this.#configuration, ...args], {
      maxBuffer: 64 * 1024 * 1024,
    })
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const master = this.#master
    if (master?.pid === undefined) return
    const gone = hasEnded(master) ? undefined : once(master, 'exit')
    if (signal === 'SIGTERM') master.kill(signal)
    else endGroup(master.pid)
    await gone
    // A process that it left behind would be in the way of the next start.
    while (await isAnswered(this.port)) await sleep(10)
    this.#master = undefined
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return children.split(' ').filter(Boolean).map(Number)
}

const nameOf = async (pid: number): Promise<string> =>
  (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()

/** The group has the number of its first member, who may be gone before the others. */
function endGroup(first: number): void {
  try {
    process.kill(-first, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

async function postfixIds(): Promise<number[]> {
  const ids = ['-u', '-g'].map(async (which) => Number((await run('id', [which, 'postfix'])).stdout))
  return Promise.all(ids).catch(() => {
    throw new Error('Postfix is not installed. On Debian: apt-get install postfix')
  })
}

const isAnswered = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/**
 * The production configuration (deploy/postfix), and everything that is different here: where it lives, where it listens,
 * where mail goes, and shorter times. Nothing else is.
 */
export const production = path.resolve(import.meta.dirname, '../../../../deploy/postfix')

const fiveDays = 5 * 24 * 3600

const overlay = (
  home: string,
  {
    sinkPort,
    login,
    neighbours,
    delayWarningSeconds = 1,
    lifetimeSeconds = fiveDays,
    bounceLifetimeSeconds = fiveDays,
    backoffSeconds = 1,
    queueDirectory = path.join(home, 'queue'),
  }: PostfixOptions,
): Record<string, string> => ({
  queue_directory: queueDirectory,
  data_directory: `${home}/data`,
  maillog_file: `${home}/log`,
  maillog_file_prefixes: home,
  myhostname: 'mta.test',
  default_transport: `smtp:[127.0.0.1]:${sinkPort}`,
  ...(neighbours && { mynetworks: neighbours }),
  ...(login && loginSettings(sinkPort, login)),

  // As quick as whole seconds can be.
  queue_run_delay: '1s',
  minimal_backoff_time: `${backoffSeconds}s`,
  maximal_backoff_time: `${backoffSeconds}s`,
  in_flow_delay: '0s',
  delay_warning_time: `${delayWarningSeconds}s`,
  maximal_queue_lifetime: `${lifetimeSeconds}s`,
  bounce_queue_lifetime: `${bounceLifetimeSeconds}s`,
})

/** A customer's. The certificate is one that nobody knows. */
const loginSettings = (port: number, { user, password }: { user: string; password: string }) => ({
  smtp_tls_security_level: 'encrypt',
  smtp_sasl_auth_enable: 'yes',
  smtp_sasl_password_maps: `inline:{{[127.0.0.1]:${port} = ${user}:${password}}}`,
  smtp_sasl_tls_security_options: 'noanonymous',
})

/** Where it listens, and where reports go, are in files of their own. */
const moves = (port: number, feedbackPort: number): [file: string, from: string, to: string][] => [
  ['master.cf', '\nsmtp       inet ', `\n127.0.0.1:${port} inet `],
  ['reports', ':2525', `:${feedbackPort}`],
]

async function replaceIn(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  if (text.split(from).length !== 2) throw new Error(`${file} does not say ${JSON.stringify(from)} once`)
  await writeFile(file, text.replace(from, to))
}

const doorText = ({ port, settings }: NonNullable<PostfixOptions['doors']>[number]): string =>
  `127.0.0.1:${port} inet n - n - - smtpd${Object.entries(settings)
    .map(([name, value]) => ` -o ${name}=${value}`)
    .join('')}\n`
