import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type Page, pages, root } from './pages.ts'
import { readDocument } from './reference/document.ts'
import { referencePages } from './reference/pages.ts'

/**
 * Writes the site's source to .stage/: the listed pages with their links adapted, and the generated API reference. VitePress
 * builds the site from there (.vitepress/config.ts).
 */
const stage = path.join(import.meta.dirname, '.stage')
const publicFolder = path.join(stage, 'public')
const byFile = new Map(pages.map((page) => [page.file, page]))
const base = '/docs/'
/** How the pages mention the reference, which is not in the repository. */
const referenceElsewhere = /API reference\s+at `\/docs\/reference\/` on a running\s+server/g

const write = async (file: string, text: string): Promise<void> => {
  const target = path.join(stage, file)
  await mkdir(path.dirname(target), { recursive: true })
  await writeFile(target, text)
}

await rm(stage, { recursive: true, force: true })
await cp(path.join(import.meta.dirname, 'public'), publicFolder, { recursive: true })

const document = await readDocument()
const reference = referencePages(document)
const staged = await Promise.all(pages.map(async (page) => ({ page, ...(await stagePage(page)) })))

for (const { page, text } of staged) {
  await write(page.path, text)
  await write(path.join('public', page.path), asServed(text))
}
for (const { path: file, text } of reference) await write(file, text)
await write('public/openapi.json', JSON.stringify(document))
await write('public/llms.txt', index())
await write('public/llms-full.txt', staged.map(({ text }) => asServed(text)).join('\n\n'))
// Read by .vitepress/config.ts for the sidebars.
await write(
  'contents.json',
  JSON.stringify({
    pages: staged.map(({ page: { path: file, section, group }, title }) => ({
      ...{ path: file, section, group, title },
    })),
    reference: reference.map(({ path: file, group, title }) => ({ path: file, group, title })),
  }),
)

async function stagePage(page: Page): Promise<{ title: string; text: string; about: string }> {
  const source = await readFile(path.join(root, page.file), 'utf8')
  const title = /^# (.+)$/m.exec(source)?.[1]
  if (title === undefined) throw new Error(`${page.file} has no title`)
  const links = await adaptLinks(page, source)
  const text = links.replace(/^# .+\n/m, (line) => `${line}\n${readersOf(page)}\n`)
  return { title, text, about: firstSentence(source) }
}

/** VitePress adds the base to the links of pages, but not to those of Markdown that is served as it is. */
function asServed(text: string): string {
  return text.replaceAll('](/', `](${base}`)
}

function readersOf({ section, readers }: Page): string {
  return `<p class="readers">${section} · for ${readers.join(', ')}</p>\n`
}

/**
 * Links to pages of the site lead to them. Images are copied. A link to any other file, such as source code, becomes
 * its text: an installation does not contain the repository.
 */
async function adaptLinks(page: Page, source: string): Promise<string> {
  const images = new Set<string>()
  const parts = source.split(/(^```.*?^```$)/ms)
  const adapted = parts.map((part, index) => {
    if (index % 2 === 1) return part
    return inOneLine(part)
      .replace(referenceElsewhere, '[API reference](/reference/index.md)')
      .replaceAll(/(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (whole, image, text, target) => {
        if (/^[a-z]+:|^#/.test(target)) return whole
        const [file = '', heading] = target.split('#')
        const found = path.join(path.dirname(page.file), file)
        if (image === '!') {
          images.add(found)
          return `![${text}](/${imagePath(found)})`
        }
        const linked = byFile.get(found) ?? byFile.get(path.join(found, 'README.md')) ?? frontPageOf(found)
        if (!linked) return text
        return `[${text}](/${linked.path}${heading === undefined ? '' : `#${heading}`})`
      })
  })
  for (const image of images) await cp(path.join(root, image), path.join(publicFolder, imagePath(image)))
  return adapted.join('')
}

/** A line that begins with `<file>` would be read as HTML, even inside code that began in the line before. */
function inOneLine(prose: string): string {
  return prose.replaceAll(/`[^`]+`/g, (code) => (code.includes('\n\n') ? code : code.replaceAll('\n', ' ')))
}

function imagePath(file: string): string {
  return file.replace(/^docs\//, '')
}

/** The repository's README is the front page of the repository, as docs/index.md is the site's. */
function frontPageOf(file: string): Page | undefined {
  return file === 'README.md' ? byFile.get('docs/index.md') : undefined
}

/** The first paragraph's first sentence. */
function firstSentence(source: string): string {
  const paragraph = source
    .split(/\n{2,}/)
    .map((block) => block.replaceAll(/\s*\n\s*/g, ' ').trim())
    .find((block) => /^[\w_"'[`*]/.test(block) && !block.startsWith('* '))
  const plain = (paragraph ?? '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\*|(?<!\w)_|_(?!\w)/g, '')
  return /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain
}

/** https://llmstxt.org: the pages with one sentence each. The pages are also served as Markdown. */
function index(): string {
  const sections = [...new Set(pages.map(({ section }) => section))]
  const lists = sections.map((section) => {
    const items = staged
      .filter(({ page }) => page.section === section)
      .map(({ page, title, about }) => `- [${title}](${base}${page.path}): ${about}`)
    return `## ${section}\n\n${items.join('\n')}\n`
  })
  return `# Postern

> A self-hosted, multi-tenant email sending service: an HTTP API and SMTP for applications, delivery through your own MTA or Amazon SES.

The complete documentation is in [one file](${base}llms-full.txt). The HTTP API is described by the [OpenAPI document](${base}openapi.json).

${lists.join('\n')}`
}
