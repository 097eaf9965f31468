import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'

/**
 * Kills a child process when this process exits, for whatever reason. Hooks do not run in a test file that is killed or
 * fails before its first test. Therefore a shell waits for the end of its stdin, which closes when this process exits.
 */
export function killOnExit(child: ChildProcess, { isGroup = false } = {}): void {
  const target = `${isGroup ? '-' : ''}${child.pid}`
  const guard = spawn('sh', ['-c', `read -r _; kill -s KILL -- ${target}`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.unref()
  ;(guard.stdin as Socket).unref()
  child.once('exit', () => guard.kill('SIGKILL'))
}
