import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { cleanUp } from '../harness/cleanup.ts'
import { newPartLog } from '../harness/part-logs.ts'
import { steadyPort } from './steady-port.ts'

/**
 * A private nginx in front of an API with the configuration in deploy/nginx, except for ports and certificate. On
 * Debian: apt-get install nginx.
 */
export interface Proxy {
  /** Speaks HTTP/1.1, buffers request bodies, forwards over HTTP/1.0 and compresses responses. */
  plainUrl: string
  /** As shipped: HTTP/2 over TLS. */
  tlsUrl: string
  /** As shipped: redirects to `tlsUrl`. */
  clearUrl: string
  /** The CA that issued the certificate of `tlsUrl`. */
  authority: string
}

const run = promisify(execFile)

export async function startProxy(apiUrl: string): Promise<Proxy> {
  const home = await mkdtemp(path.join(tmpdir(), 'postern-nginx-'))
  // If nginx is started by root, its workers run as another user.
  await chmod(home, 0o755)
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ...['-keyout', path.join(home, 'key.pem'), '-out', path.join(home, 'certificate.pem')],
  ])
  const [plainPort, tlsPort, clearPort] = [await steadyPort(), await steadyPort(), await steadyPort()]
  const placement = { apiUrl, home, plainPort, tlsPort, clearPort }
  await writeFile(path.join(home, 'postern.conf'), await shipped(placement))
  await writeFile(path.join(home, 'nginx.conf'), configuration(placement))
  const nginx = (...args: string[]) =>
    run('nginx', ['-p', home, '-c', 'nginx.conf', '-e', path.join(home, 'error.log'), ...args], {
      // Debian installs it in a directory that is only on root's PATH.
      env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    })
  // It daemonizes once it listens.
  await nginx().catch((error: Error & { code?: unknown }) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error('nginx is not installed. On Debian: apt-get install nginx')
  })
  cleanUp(async () => {
    await nginx('-s', 'stop')
    newPartLog('nginx').copyFrom(path.join(home, 'error.log'))
    await rm(home, { recursive: true, force: true })
  })
  return {
    plainUrl: `http://127.0.0.1:${plainPort}`,
    tlsUrl: `https://127.0.0.1:${tlsPort}`,
    clearUrl: `http://127.0.0.1:${clearPort}`,
    authority: await readFile(path.join(home, 'certificate.pem'), 'utf8'),
  }
}

interface Placement {
  apiUrl: string
  home: string
  plainPort: number
  tlsPort: number
  clearPort: number
}

/** All changes made to the configuration that operators install. */
const moves = ({ apiUrl, home, tlsPort, clearPort }: Placement): [from: string, to: string][] => [
  ['server 127.0.0.1:8080;', `server ${new URL(apiUrl).host};`],
  ['listen 80;', `listen 127.0.0.1:${clearPort};`],
  ['listen [::]:80;', ''],
  ['listen 443 ssl http2;', `listen 127.0.0.1:${tlsPort} ssl http2;`],
  ['listen [::]:443 ssl http2;', ''],
  ['/etc/letsencrypt/live/mail.example.org/fullchain.pem', `${home}/certificate.pem`],
  ['/etc/letsencrypt/live/mail.example.org/privkey.pem', `${home}/key.pem`],
]

async function shipped(placement: Placement): Promise<string> {
  const file = path.resolve(import.meta.dirname, '../../../../deploy/nginx/postern.conf')
  let text = await readFile(file, 'utf8')
  for (const [from, to] of moves(placement)) {
    if (text.split(from).length !== 2) throw new Error(`${file} does not contain "${from}" exactly once`)
    text = text.replace(from, to)
  }
  return text
}

const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

const configuration = ({ apiUrl, home, plainPort }: Placement): string => `
worker_processes 1;
pid nginx.pid;
error_log error.log;
events { worker_connections 64; }
http {
  access_log off;
  ${temporaryPaths.map((name) => `${name}_temp_path ${home}/${name};`).join('\n  ')}
  server {
    listen 127.0.0.1:${plainPort};
    gzip on;
    gzip_types application/json;
    gzip_min_length 1;
    location / { proxy_pass ${apiUrl}; }
  }
  include postern.conf;
}
`
