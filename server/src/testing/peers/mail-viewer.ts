import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import PostalMime from 'postal-mime'

/** Shows the mail that the local mail server of `npm run dev` has stored, newest first. */
export interface MailViewer {
  url: string
  close(): Promise<void>
}

const shownAtMost = 200
const nameFormat = /^[\w-]+\.eml$/

export async function startMailViewer(folder: string): Promise<MailViewer> {
  const server = createServer((request, response) => {
    const name = decodeURIComponent((request.url ?? '/').slice(1))
    const page = name === '' ? listPage(folder) : nameFormat.test(name) ? mailPage(folder, name) : undefined
    void Promise.resolve(page)
      .catch(() => undefined)
      .then((html) => {
        response.writeHead(html === undefined ? 404 : 200, {
          'content-type': 'text/html; charset=utf-8',
          // Mail must not load or run anything.
          'content-security-policy':
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-src 'self'",
        })
        response.end(html ?? document('Not found', '<p>There is no such mail.</p>'))
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

async function listPage(folder: string): Promise<string> {
  const files = (await readdir(folder)).filter((name) => nameFormat.test(name)).sort()
  const newest = files.reverse().slice(0, shownAtMost)
  const rows = await Promise.all(
    newest.map(async (name) => {
      const { from, to, subject, date } = await read(folder, name)
      const cells = [date ?? '', from?.address ?? '', addressesOf(to)].map(
        (text) => `<td>${escaped(text)}</td>`,
      )
      return `<tr>${cells.join('')}<td><a href="/${name}">${escaped(subject || '(no subject)')}</a></td></tr>`
    }),
  )
  const table = `<table><tr><th>Date</th><th>From</th><th>To</th><th>Subject</th></tr>${rows.join('')}</table>`
  return document(
    'Sent mail',
    newest.length > 0 ? table : '<p>No mail yet. Reload the page after you have sent one.</p>',
  )
}

async function mailPage(folder: string, name: string): Promise<string> {
  const raw = await readFile(path.join(folder, name))
  const { subject, text, html, headers, attachments } = await PostalMime.parse(raw)
  const lines = headers.map(({ originalKey, value }) => `${originalKey}: ${value}`).join('\n')
  return document(
    subject || '(no subject)',
    [
      '<p><a href="/">All mail</a></p>',
      html === undefined ? '' : `<h2>HTML</h2><iframe sandbox srcdoc="${escaped(html)}"></iframe>`,
      text === undefined ? '' : `<h2>Text</h2><pre>${escaped(text)}</pre>`,
      ...attachments.map(
        ({ filename, mimeType }) => `<p>Attachment: ${escaped(`${filename ?? ''} (${mimeType})`)}</p>`,
      ),
      `<h2>Header</h2><pre>${escaped(lines)}</pre>`,
    ].join('\n'),
  )
}

const read = async (folder: string, name: string) => PostalMime.parse(await readFile(path.join(folder, name)))

const addressesOf = (to: readonly { address?: string | undefined }[] | undefined): string =>
  (to ?? []).map(({ address }) => address ?? '').join(', ')

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const document = (title: string, body: string): string => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
  body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; overflow-wrap: anywhere }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: 1rem; border-radius: 6px }
  iframe { width: 100%; height: 24rem; border: 1px solid #8884; border-radius: 6px; background: #fff }
</style>
<h1>${escaped(title)}</h1>
${body}
</html>
`
