import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'

/** An external program that runs until it is stopped. */
export interface Daemon {
  pid: number
  isRunning(): boolean
  /** Sends SIGTERM or another signal, and waits until the program has exited. */
  end(signal?: NodeJS.Signals): Promise<void>
}

export interface DaemonOptions {
  environment?: Record<string, string>
  /** The file to which its output is appended. */
  log: string
  /** The user to run it as. Default: the current user. */
  user?: { uid: number; gid: number } | undefined
  cwd: string
}

export function startDaemon(command: string, args: string[], options: DaemonOptions): Daemon {
  const log = openSync(options.log, 'a')
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { PATH: `${process.env['PATH']}:/usr/sbin`, LANG: 'C.UTF-8', ...options.environment },
    stdio: ['ignore', log, log],
    ...options.user,
  })
  closeSync(log)
  // The caller notices if the program does not respond.
  child.on('error', () => {})
  const isRunning = (): boolean =>
    child.pid !== undefined && child.exitCode === null && child.signalCode === null
  return {
    pid: child.pid ?? 0,
    isRunning,
    async end(signal = 'SIGTERM') {
      if (!isRunning()) return
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    },
  }
}
