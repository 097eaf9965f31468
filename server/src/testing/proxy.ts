import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { cleanUp } from './cleanup.ts'
import { steadyPort } from './steady-port.ts'

/**
 * A private nginx in front of an API, as operators put one there. On Debian: apt-get install nginx.
 */
export interface Proxy {
  /** Speaks HTTP/1.1, holds a body back until it is whole, asks the API in HTTP/1.0, compresses answers. */
  plainUrl: string
  /** Speaks HTTP/2 over TLS, and passes a body on as it comes. */
  tlsUrl: string
  /** What signed the certificate of `tlsUrl`. */
  authority: string
}

const run = promisify(execFile)

export async function startProxy(apiUrl: string): Promise<Proxy> {
  const home = await mkdtemp(path.join(tmpdir(), 'postern-nginx-'))
  // nginx started by root works as somebody else.
  await chmod(home, 0o755)
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ...['-keyout', path.join(home, 'key.pem'), '-out', path.join(home, 'certificate.pem')],
  ])
  const [plainPort, tlsPort] = [await steadyPort(), await steadyPort()]
  await writeFile(path.join(home, 'nginx.conf'), configuration({ apiUrl, home, plainPort, tlsPort }))
  const nginx = (...args: string[]) =>
    run('nginx', ['-p', home, '-c', 'nginx.conf', '-e', path.join(home, 'error.log'), ...args], {
      // Debian keeps it where only root looks.
      env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    })
  // It goes to the background once it listens.
  await nginx().catch((error: Error & { code?: unknown }) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error('nginx is not installed. On Debian: apt-get install nginx')
  })
  cleanUp(async () => {
    await nginx('-s', 'stop')
    await rm(home, { recursive: true, force: true })
  })
  return {
    plainUrl: `http://127.0.0.1:${plainPort}`,
    tlsUrl: `https://127.0.0.1:${tlsPort}`,
    authority: await readFile(path.join(home, 'certificate.pem'), 'utf8'),
  }
}

interface Placement {
  apiUrl: string
  home: string
  plainPort: number
  tlsPort: number
}

const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

const configuration = ({ apiUrl, home, plainPort, tlsPort }: Placement): string => `
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
  server {
    listen 127.0.0.1:${tlsPort} ssl http2;
    ssl_certificate certificate.pem;
    ssl_certificate_key key.pem;
    location / {
      proxy_pass ${apiUrl};
      proxy_http_version 1.1;
      proxy_request_buffering off;
    }
  }
}
`
