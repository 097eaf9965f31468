import { setTimeout as sleep } from 'node:timers/promises'
import { settings } from '../config/table.ts'
import { UsageError } from '../platform/errors.ts'
import { integer, Wrong } from '../platform/settings.ts'
import { command, endWith, print } from './command.ts'
import { localApi } from './local-api.ts'

/** `postern health`: exits with 0 if this machine's API is ready, otherwise with 1. */
export const health = command('health', {
  async ''({ wait = '0', json }) {
    const url = `${localApi(listenAddress())}/readyz`
    const end = performance.now() + secondsOf(wait) * 1000
    for (;;) {
      const { isReady, problem } = await check(url)
      if (isReady || performance.now() >= end) {
        print(json, { is_ready: isReady }, () => (isReady ? 'ready' : problem))
        if (!isReady) endWith('failed')
        return
      }
      await sleep(200)
    }
  },
})

/** Reads no other settings, because the caller may not have access to the secrets. */
function listenAddress() {
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

async function check(url: string): Promise<{ isReady: boolean; problem: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3000) })
    await response.body?.cancel()
    return { isReady: response.ok, problem: `not ready: ${url} returned ${response.status}` }
  } catch {
    return { isReady: false, problem: `not ready: no response from ${url}` }
  }
}
