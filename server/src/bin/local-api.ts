import type { Config } from '../config/config.ts'

/** Where the API of this machine is reached by this machine. */
export function localApi({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const near: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const address = near[host] ?? host
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
