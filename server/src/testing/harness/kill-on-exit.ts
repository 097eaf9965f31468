import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'

/**
 * Sees to it that what was spawned does not outlive this process, in whichever way that ends: a test file that fails
 * before its first test, or is killed, runs no hook in which it could end anything. A shell waits for its input to end,
 * which it does with this process.
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
