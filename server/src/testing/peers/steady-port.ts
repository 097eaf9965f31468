import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'

/**
 * Returns a loopback port for a program that cannot choose a free port itself, or that restarts on the same port. The
 * port is below the system's range for outgoing connections. No other caller of this function gets the port while this
 * process runs, even if nothing listens there yet: each port has an abstract Unix socket that only one process can
 * listen on, and the kernel closes the socket when that process exits.
 */
export async function steadyPort(): Promise<number> {
  const [end = 32_768] = (await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => ''))
    .split(/\s/)
    .filter((word) => word !== '')
    .map(Number)
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(Math.min(10_000, end - 1), end)
    const reservation = await listen(`\0postern-test-port-${port}`)
    if (!reservation) continue
    const probe = await listen(port)
    if (!probe) {
      reservation.close()
      continue
    }
    await new Promise((resolve) => probe.close(resolve))
    reservation.unref()
    return port
  }
  throw new Error(`no port below ${end} is free`)
}

const listen = (place: number | string): Promise<Server | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    const listening = () => resolve(server)
    if (typeof place === 'number') server.listen(place, '127.0.0.1', listening)
    else server.listen(place, listening)
  })
