import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import path from 'node:path'
import { Webhook } from 'standardwebhooks'

/**
 * The webhook receiver of `npm run dev`: an HTTPS server on 127.0.0.1 that verifies the signature of each request with the
 * library of Standard Webhooks, as a customer's receiver would, and stores the request as a file. Paths that begin with
 * `/fail` get 503, so that retries can be watched.
 */
export interface DevWebhooks {
  url: string
  close(): Promise<void>
}

export interface DevWebhooksOptions {
  /** 0 means any free port. */
  port: number
  cert: Buffer
  key: Buffer
  /** The folder for stored requests. */
  folder: string
  /** Contains the endpoint's secret. Read for each request, so that a rotated secret can be put there. */
  secretFile: string
  say(line: string): void
}

export interface StoredWebhook {
  receivedAt: string
  path: string
  headers: Record<string, string>
  body: string
  status: number
  /** Why the signature is invalid; null if it is valid. */
  invalid: string | null
}

/** Postern's events are smaller, except inbound mail, which contains the whole message. */
const maxBodyBytes = 64 * 1024 * 1024

export async function startDevWebhooks(options: DevWebhooksOptions): Promise<DevWebhooks> {
  const { port, cert, key, folder, say } = options
  await mkdir(folder, { recursive: true })
  let count = 0

  async function receive(request: IncomingMessage): Promise<number> {
    const body = await bodyOf(request)
    if (body === undefined) return 413
    const isFailing = (request.url ?? '/').startsWith('/fail')
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
    const webhook: StoredWebhook = {
      receivedAt: new Date().toISOString(),
      path: request.url ?? '/',
      headers,
      body,
      status: isFailing ? 503 : 204,
      invalid: await whyInvalid(options.secretFile, body, headers),
    }
    const name = `${webhook.receivedAt.replace(/[:.]/g, '-')}-${String(++count).padStart(4, '0')}.json`
    await writeFile(path.join(folder, name), JSON.stringify(webhook))
    if (webhook.invalid !== null) say(`  webhook with an invalid signature: ${webhook.invalid}`)
    return webhook.status
  }

  const server = createServer({ cert, key }, (request, response) => {
    receive(request).then(
      (status) => response.writeHead(status).end(),
      (error: Error) => {
        say(`  could not store a webhook: ${error.message}`)
        response.writeHead(500).end()
      },
    )
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `https://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > maxBodyBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

async function whyInvalid(
  secretFile: string,
  body: string,
  headers: Record<string, string>,
): Promise<string | null> {
  const secret = await readFile(secretFile, 'utf8').catch(() => undefined)
  if (secret === undefined) return `there is no secret in ${path.relative('', secretFile)}`
  try {
    new Webhook(secret.trim()).verify(body, headers)
    return null
  } catch (error) {
    return (error as Error).message
  }
}
