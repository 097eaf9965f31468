import { setTimeout as sleep } from 'node:timers/promises'
import { settings } from '../config/table.ts'
import { UsageError } from '../platform/errors.ts'
import { integer, Wrong } from '../platform/settings.ts'
import { command, endWith, print } from './command.ts'
import { localApi } from './local-api.ts'

/** For those that keep processes running: whether the API of this machine is ready. Exit code 0 or 1. */
export const health = command('health', {
  async ''({ wait = '0', json }) {
    const url = `${localApi(whereItListens())}/readyz`
    const end = performance.now() + secondsOf(wait) * 1000
    for (;;) {
      const { isReady, told } = await look(url)
      if (isReady || performance.now() >= end) {
        print(json, { is_ready: isReady }, () => (isReady ? 'ready' : told))
        if (!isReady) endWith('failed')
        return
      }
      await sleep(200)
    }
  },
})

/** Nothing else is read: whoever asks may not see the secrets. */
function whereItListens() {
  const { host, port } = settings
  return {
    host: host.parse(process.env[host.name] || host.default),
    port: port.parse(process.env[port.name] || port.default),
  }
}

function secondsOf(text: string): number {
  try {
    return integer(0, 3600)(text)
  } catch (error) {
    throw error instanceof Wrong ? new UsageError(`--wait ${error.message}`) : error
  }
}

async function look(url: string): Promise<{ isReady: boolean; told: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3000) })
    await response.body?.cancel()
    return { isReady: response.ok, told: `not ready: ${url} answers ${response.status}` }
  } catch {
    return { isReady: false, told: `not ready: nothing answers at ${url}` }
  }
}
