import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'

/**
 * A simulated internet in a network namespace without external access: a DNS server for all names, and a mail server
 * for example.net at a public address.
 */
export interface World {
  /** Adds DNS records in the format printed by `postern project create`. */
  publish(lines: string[]): Promise<void>
  openMailServer(): Promise<void>
  received: { from: string; to: string[]; raw: string }[]
}

const mailServer = '44.0.0.25'

export async function openWorld(): Promise<World> {
  const ip = (...args: string[]) => execFileSync('ip', args)
  ip('link', 'set', 'lo', 'up')
  ip('address', 'add', `${mailServer}/32`, 'dev', 'lo')
  const received: World['received'] = []
  return { received, publish: await openDns(), openMailServer: () => openMailServer(received) }
}

async function openMailServer(received: World['received']): Promise<void> {
  const server = new SMTPServer({
    name: 'mx.example.net',
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    onData(stream, { envelope }, done) {
      const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
      void text(stream).then((raw) => {
        received.push({ from, to: envelope.rcptTo.map(({ address }) => address), raw })
        done(null, 'Kept')
      })
    },
  })
  server.listen(25, mailServer)
  await once(server.server, 'listening')
}

async function openDns(): Promise<World['publish']> {
  const home = mkdtempSync(path.join(tmpdir(), 'postern-world-'))
  mkdirSync(path.join(home, 'state'))
  const records = [
    'example.net. MX 10 mx.example.net.',
    `mx.example.net. A ${mailServer}`,
    'mail.example.org. A 44.0.0.1',
  ]
  let serial = 0
  const write = () =>
    writeFileSync(
      path.join(home, 'zone'),
      [`$TTL 1\n@ SOA ns. root. ${++serial} 1 1 1 1\n@ NS ns.\nns. A 127.0.0.1`, ...records, ''].join('\n'),
    )
  const file = path.join(home, 'knot.conf')
  writeFileSync(file, configuration(home))
  write()
  const knot = spawn('/usr/sbin/knotd', ['-c', file], { stdio: 'ignore' })
  process.once('exit', () => knot.kill())
  await sleep(1000)
  return async (lines) => {
    records.push(...lines.map(recordOf))
    write()
    execFileSync('/usr/sbin/knotc', ['-c', file, '-b', '-f', 'zone-reload', '.'])
  }
}

/** Parses three columns: name, type and value. A TXT value is split into strings of 255 octets (RFC 1035 §3.3). */
function recordOf(line: string): string {
  const [, name, type, value = ''] = /^\s*(\S+)\s+(\S+)\s+(.+)$/.exec(line) ?? []
  if (type === 'TXT')
    return `${name}. TXT ${value
      .match(/.{1,255}/g)
      ?.map((part) => `"${part}"`)
      .join(' ')}`
  return `${name}. ${type} ${value}.`
}

const configuration = (home: string): string => `
server:
    rundir: ${home}
    listen: 127.0.0.1@53
database:
    storage: ${home}/state
log:
  - target: stderr
    any: error
zone:
  - domain: "."
    storage: ${home}
    file: zone
    semantic-checks: off
    journal-content: none
    zonefile-sync: -1
    zonefile-load: whole
`
