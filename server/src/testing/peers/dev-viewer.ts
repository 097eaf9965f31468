import { once } from 'node:events'
import { createServer } from 'node:http'
import { devPage } from './dev-page.ts'
import { mailFileFormat, mailListPage, mailPage } from './mail-pages.ts'
import { webhookFileFormat, webhookListPage, webhookPage } from './webhook-pages.ts'

/** Shows sent mail and received webhooks in the browser. */
export interface DevViewer {
  url: string
  close(): Promise<void>
}

export interface DevViewerOptions {
  mailFolder: string
  webhookFolder: string
  /** The URL of the receiver. */
  webhookUrl: string
}

export async function startDevViewer(options: DevViewerOptions): Promise<DevViewer> {
  const server = createServer((request, response) => {
    void Promise.resolve(pageFor(request.url ?? '/', options))
      .catch(() => undefined)
      .then((html) => {
        response.writeHead(html === undefined ? 404 : 200, {
          'content-type': 'text/html; charset=utf-8',
          // Mail must not load or run anything.
          'content-security-policy':
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-src 'self'",
        })
        response.end(html ?? devPage({ title: 'Not found', body: '<p>This page does not exist.</p>' }))
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function pageFor(
  url: string,
  { mailFolder, webhookFolder, webhookUrl }: DevViewerOptions,
): Promise<string> | undefined {
  const [first = '', second = ''] = url.slice(1).split('/')
  if (first === 'webhooks' && second === '') return webhookListPage(webhookFolder, webhookUrl)
  if (first === 'webhooks' && webhookFileFormat.test(second)) return webhookPage(webhookFolder, second)
  if (first === '') return mailListPage(mailFolder)
  return mailFileFormat.test(first) ? mailPage(mailFolder, first) : undefined
}
