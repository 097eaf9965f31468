import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { devPage, escaped, table } from './dev-page.ts'
import type { StoredWebhook } from './dev-webhooks.ts'

/** Shows the webhooks that the local receiver of `npm run dev` has stored, newest first. */
const shownAtMost = 200
export const webhookFileFormat = /^[\w-]+\.json$/

export async function webhookListPage(folder: string, url: string): Promise<string> {
  const files = (await readdir(folder)).filter((name) => webhookFileFormat.test(name)).sort()
  const newest = files.reverse().slice(0, shownAtMost)
  const rows = await Promise.all(
    newest.map(async (name) => {
      const webhook = await read(folder, name)
      const { type, about } = summaryOf(webhook.body)
      const time = webhook.receivedAt.slice(0, 19).replace('T', '&nbsp;')
      return `<tr><td><a href="/webhooks/${name}">${escaped(type)}</a></td><td>${verdictOf(webhook)}</td>
        <td>${webhook.status}</td><td>${escaped(about)}</td><td>${time}</td></tr>`
    }),
  )
  return devPage({
    title: 'Webhooks',
    isList: true,
    body: `<p>Requests to <code>${escaped(url)}</code>. It responds with 204, and with 503 to paths that begin with
<code>/fail</code>.</p>
${newest.length > 0 ? table(['Event', 'Signature', 'Response', 'About', 'Received&nbsp;(UTC)'], rows) : '<p>No webhooks yet.</p>'}`,
  })
}

export async function webhookPage(folder: string, name: string): Promise<string> {
  const webhook = await read(folder, name)
  const headers = Object.entries(webhook.headers).map(([header, value]) => `${header}: ${value}`)
  return devPage({
    title: summaryOf(webhook.body).type,
    body: `<p>Signature: ${verdictOf(webhook)}</p>
<p>Received at ${escaped(webhook.receivedAt)}, answered with ${webhook.status}.</p>
<h2>Body</h2><pre>${escaped(formatted(webhook.body))}</pre>
<h2>Request</h2><pre>${escaped([`POST ${webhook.path}`, ...headers].join('\n'))}</pre>`,
  })
}

const read = async (folder: string, name: string): Promise<StoredWebhook> =>
  JSON.parse(await readFile(path.join(folder, name), 'utf8'))

const verdictOf = ({ invalid }: StoredWebhook): string =>
  invalid === null ? 'valid' : `<span class="bad">invalid</span>: ${escaped(invalid)}`

function parsed(body: string): { type?: unknown; data?: Record<string, unknown> } | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function summaryOf(body: string): { type: string; about: string } {
  const { type, data } = parsed(body) ?? {}
  const about = ['recipient', 'message_id', 'domain', 'from'].map((name) => data?.[name]).find(isText)
  return { type: isText(type) ? type : '(no event)', about: about ?? '' }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const formatted = (body: string): string => {
  const value = parsed(body)
  return value ? JSON.stringify(value, undefined, 2) : body
}
