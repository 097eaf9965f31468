/**
 * The text and HTML of system mail. One function makes all of them: a caller chooses blocks, and no caller writes HTML. The
 * HTML has no images, tables, scripts or remote content, and no colors, so that it is readable in a dark mail client.
 */

/** How the operator presents the installation. */
export interface Operator {
  /** Also the sender's display name. */
  name: string
  supportEmail: string | null
  supportUrl: string | null
}

/** A paragraph, or: */
export type Block =
  | string
  /** On this installation: customers choose no part of it. */
  | { link: string; label: string }
  | { items: readonly string[] }
  /** Written by the operator. */
  | { note: string }

export interface SystemMailContent {
  subject: string
  blocks: readonly Block[]
}

export function renderSystemMail(
  { subject, blocks }: SystemMailContent,
  operator: Operator,
  publicUrl: URL,
): { subject: string; text: string; html: string } {
  const footer = footerOf(operator, publicUrl)
  return {
    subject,
    text: `${[...blocks.map(plain), footer.join('\n')].join('\n\n')}\n`,
    html: [
      '<!DOCTYPE html>',
      '<html lang="en">',
      '<head>',
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="color-scheme" content="light dark">',
      `<title>${escaped(subject)}</title>`,
      '</head>',
      '<body style="margin: 0; padding: 24px; font: 16px/1.5 system-ui, sans-serif">',
      '<div style="max-width: 36em; margin: 0 auto; overflow-wrap: anywhere">',
      `<h1 style="font-size: 20px; line-height: 1.3; margin: 0 0 16px">${escaped(subject)}</h1>`,
      ...blocks.map(markup),
      `<p style="margin: 32px 0 0; font-size: 13px; opacity: 0.7">${footer.map(linked).join('<br>')}</p>`,
      '</div>',
      '</body>',
      '</html>',
      '',
    ].join('\n'),
  }
}

function footerOf({ name, supportEmail, supportUrl }: Operator, { origin }: URL): string[] {
  const support = [supportUrl, supportEmail].filter((one) => one !== null)
  return [`${name}, ${origin}`, ...(support.length === 0 ? [] : [`Support: ${support.join(' or ')}`])]
}

function plain(block: Block): string {
  if (typeof block === 'string') return block
  if ('link' in block) return `${block.label}:\n${block.link}`
  if ('items' in block) return block.items.map((item) => `  ${item}`).join('\n')
  return `Note from the operator:\n${block.note.replace(/^/gm, '> ')}`
}

const paragraph = 'style="margin: 0 0 16px"'

function markup(block: Block): string {
  if (typeof block === 'string') return `<p ${paragraph}>${escaped(block)}</p>`
  if ('link' in block) {
    const url = escaped(block.link)
    return `<p ${paragraph}><a href="${url}"><b>${escaped(block.label)}</b></a><br><small>${url}</small></p>`
  }
  if ('items' in block) {
    return `<ul ${paragraph}>${block.items.map((item) => `<li>${escaped(item)}</li>`).join('')}</ul>`
  }
  const note = escaped(block.note).replaceAll('\n', '<br>')
  return `<p ${paragraph}>Note from the operator:</p><blockquote style="margin: 0 0 16px 24px">${note}</blockquote>`
}

/** Links the operator's own addresses. */
function linked(line: string): string {
  return line
    .split(' ')
    .map((word) => {
      const target = escaped(word)
      if (/^https?:\/\//.test(word)) return `<a href="${target}">${target}</a>`
      return /^[^@,]+@[^@,]+$/.test(word) ? `<a href="mailto:${target}">${target}</a>` : target
    })
    .join(' ')
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? '')
