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
import { eventually } from '../harness/waiting.ts'
import { steadyPort } from './steady-port.ts'

/**
 * A private Postfix on a loopback port with its own queue and log. It uses the production configuration except for the
 * changes in `overlay`. On Debian: apt-get install postfix; the installed instance is not used and need not run. All
 * routing is determined by the options, never by MX records: Postfix uses the system resolver, which cannot resolve
 * names in a test's zones.
 */
export interface PostfixOptions {
  /** The port that receives all mail. */
  sinkPort: number
  /** Credentials for that port, with STARTTLS, for a customer's Postfix that uses a smart host. */
  login?: { user: string; password: string }
  /** The port that receives its reports. */
  feedbackPort: number
  /** The delay before a delay report is sent. By default, Postfix sends none. */
  delayWarningSeconds?: number
  /** The time after which a message expires. */
  lifetimeSeconds?: number
  /** The time after which a report expires. Reports go to the feedback port. */
  bounceLifetimeSeconds?: number
  /** The time between two delivery attempts. */
  backoffSeconds?: number
  /** Clients that may relay, by default this machine. */
  neighbours?: string
  /** Additional ports, each with its own settings. */
  listeners?: { port: number; settings: Record<string, string> }[]
  /** An empty directory for the queue, if it should be elsewhere. */
  queueDirectory?: string
}

/** In the format of `postqueue -j`. */
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

  /** Removed after the file's tests. */
  static async open(options: PostfixOptions): Promise<Postfix> {
    const postfix = await Postfix.keep(options)
    cleanUp(() => postfix.remove())
    return postfix
  }

  /** The caller must remove it. */
  static async keep(options: PostfixOptions): Promise<Postfix> {
    if (userInfo().uid !== 0) throw new Error('Postfix and the tests that use it need root')
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

  /** The process id of the master, whose children are all other processes of this Postfix. */
  get masterPid(): number {
    return this.#master?.pid ?? 0
  }

  /** Starts Postfix with its existing queue. */
  async start(): Promise<void> {
    // In its own process group: Postfix stops its processes by a signal to the group.
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

  /** Stops Postfix as an operator would. Deliveries in progress are aborted and resume at the next start. */
  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  /** Sends SIGKILL, which simulates a power failure. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /**
   * Sends a signal to each of its processes with that name, for example `smtpd` or `master`. Returns the number of
   * processes.
   */
  async signal(name: string, signal: NodeJS.Signals): Promise<number> {
    const master = this.#master
    if (master?.pid === undefined || hasEnded(master)) return 0
    const family = [master.pid, ...(await childrenOf(master.pid))]
    const named = await Promise.all(family.map(async (pid) => ((await nameOf(pid)) === name ? [pid] : [])))
    for (const pid of named.flat()) process.kill(pid, signal)
    return named.flat().length
  }

  async queue(): Promise<QueuedMail[]> {
    const listing = await eventually('postqueue lists the queue', () =>
      this.#tell('postqueue', '-j').then(
        ({ stdout }) => stdout,
        (error: ExecFileException & { stderr: string }) => {
          // showq exited while it listed the queue, for example because a test killed Postfix's processes.
          if (error.stderr.includes('malformed showq server response')) return undefined
          throw error
        },
      ),
    )
    return listing
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }

  /** Puts all queued messages on hold. */
  async hold(queueId = 'ALL'): Promise<void> {
    await this.#tell('postsuper', '-h', queueId)
  }

  async release(queueId = 'ALL'): Promise<void> {
    await this.#tell('postsuper', '-H', queueId)
    await this.flush()
  }

  /** Expires all queued messages. Postfix bounces them. */
  async expire(): Promise<void> {
    await this.#tell('postsuper', '-f', 'ALL')
    await this.flush()
  }

  /** Retries deferred messages now. */
  async flush(): Promise<void> {
    await this.#tell('postqueue', '-f')
  }

  /** The value of a key in a lookup table; empty without an entry. Uses this configuration, not the host's. */
  async lookUp(table: string, key: string): Promise<string> {
    try {
      return (await this.#tell('postmap', '-q', key, table)).stdout.trim()
    } catch (error) {
      // postmap(1): exit status 1 without output means that there is no entry.
      const { code, stderr } = error as ExecFileException & { stderr: string }
      if (code === 1 && stderr === '') return ''
      throw error
    }
  }

  /** The complete log so far. */
  log(): Promise<string> {
    return readFile(path.join(this.#home, 'log'), 'utf8').catch(() => '')
  }

  get #configuration(): string {
    return path.join(this.#home, 'configuration')
  }

  /**
   * Postfix requires specific owners: everything except `data` belongs to root, and Postfix creates the queue itself.
   */
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
    for (const listener of options.listeners ?? [])
      await appendFile(path.join(this.#configuration, 'master.cf'), listenerText(listener))
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
    // A leftover process would block the next start.
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

/** The group id is the pid of its first member, which can exit before the others. */
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
 * The production configuration (deploy/postfix) with all changes applied: directories, ports, routing and shorter
 * times.
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

  // The minimum, because Postfix supports only whole seconds.
  queue_run_delay: '1s',
  minimal_backoff_time: `${backoffSeconds}s`,
  maximal_backoff_time: `${backoffSeconds}s`,
  in_flow_delay: '0s',
  delay_warning_time: `${delayWarningSeconds}s`,
  maximal_queue_lifetime: `${lifetimeSeconds}s`,
  bounce_queue_lifetime: `${bounceLifetimeSeconds}s`,
})

/** Settings for a customer's Postfix. The smart host's certificate is self-signed. */
const loginSettings = (port: number, { user, password }: { user: string; password: string }) => ({
  smtp_tls_security_level: 'encrypt',
  smtp_sasl_auth_enable: 'yes',
  smtp_sasl_password_maps: `inline:{{[127.0.0.1]:${port} = ${user}:${password}}}`,
  smtp_sasl_tls_security_options: 'noanonymous',
})

/**
 * The listening port and the routing of reports are in separate files. The queue manager reads the incoming queue again after
 * 5 s instead of 300: while it starts, it can miss the notification of a new message.
 */
const moves = (port: number, feedbackPort: number): [file: string, from: string, to: string][] => [
  ['master.cf', '\nsmtp       inet ', `\n127.0.0.1:${port} inet `],
  [
    'master.cf',
    '\nqmgr       unix        n       -      n      300 ',
    '\nqmgr       unix        n       -      n      5 ',
  ],
  ['reports', ':2525', `:${feedbackPort}`],
]

async function replaceIn(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  if (text.split(from).length !== 2)
    throw new Error(`${file} does not contain ${JSON.stringify(from)} exactly once`)
  await writeFile(file, text.replace(from, to))
}

const listenerText = ({ port, settings }: NonNullable<PostfixOptions['listeners']>[number]): string =>
  `127.0.0.1:${port} inet n - n - - smtpd${Object.entries(settings)
    .map(([name, value]) => ` -o ${name}=${value}`)
    .join('')}\n`
