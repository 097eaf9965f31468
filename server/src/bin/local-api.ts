import type { Config } from '../config/config.ts'

/** The URL at which the API on this machine can be reached locally. */
export function localApi({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const loopback: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const address = loopback[host] ?? host
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
