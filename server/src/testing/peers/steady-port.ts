import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

/**
 * A loopback port for what cannot choose one itself, or is stopped and started again in the same place. It lies below
 * those that the system gives to outgoing connections, so nobody takes it by chance in the meantime.
 */
export async function steadyPort(): Promise<number> {
  const [end = 32_768] = (await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => ''))
    .split(/\s/)
    .filter((word) => word !== '')
    .map(Number)
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(Math.min(10_000, end - 1), end)
    if (await isFree(port)) return port
  }
  throw new Error(`no port below ${end} is free`)
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
