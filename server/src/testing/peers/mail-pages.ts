import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import PostalMime from 'postal-mime'
import { devPage, escaped, table } from './dev-page.ts'

/** Shows the mail that the local mail server of `npm run dev` has stored, newest first. */
const shownAtMost = 200
export const mailFileFormat = /^[\w-]+\.eml$/

export async function mailListPage(folder: string): Promise<string> {
  const files = (await readdir(folder)).filter((name) => mailFileFormat.test(name)).sort()
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
  return devPage({
    title: 'Sent mail',
    isList: true,
    body: newest.length > 0 ? table(['Date', 'From', 'To', 'Subject'], rows) : '<p>No mail yet.</p>',
  })
}

export async function mailPage(folder: string, name: string): Promise<string> {
  const raw = await readFile(path.join(folder, name))
  const { subject, text, html, headers, attachments } = await PostalMime.parse(raw)
  const lines = headers.map(({ originalKey, value }) => `${originalKey}: ${value}`).join('\n')
  return devPage({
    title: subject || '(no subject)',
    body: [
      html === undefined ? '' : `<h2>HTML</h2><iframe sandbox srcdoc="${escaped(html)}"></iframe>`,
      text === undefined ? '' : `<h2>Text</h2><pre>${escaped(text)}</pre>`,
      ...attachments.map(
        ({ filename, mimeType }) => `<p>Attachment: ${escaped(`${filename ?? ''} (${mimeType})`)}</p>`,
      ),
      `<h2>Header</h2><pre>${escaped(lines)}</pre>`,
    ].join('\n'),
  })
}

const read = async (folder: string, name: string) => PostalMime.parse(await readFile(path.join(folder, name)))

const addressesOf = (to: readonly { address?: string | undefined }[] | undefined): string =>
  (to ?? []).map(({ address }) => address ?? '').join(', ')
