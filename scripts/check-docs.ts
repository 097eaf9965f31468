import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { blocksOf, pagesWithBlocks } from '../proofs/docs/blocks.ts'
import { pages as sitePages } from '../site/pages.ts'
import { slugify } from '../site/slugify.ts'

/**
 * Checks that every link to a page, an image or a heading has a target, that every code block is marked as run or not
 * run (proofs/docs/blocks.ts), and that every page of docs/ has a place in the documentation's site (site/pages.ts).
 */
const root = path.resolve(import.meta.dirname, '..')
const pages = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'proofs/*.md'], { cwd: root }).sort()

const problems: string[] = []
let links = 0
for (const page of pages) {
  for (const target of linksOf(prose(page))) {
    links++
    const [file = '', heading] = target.split('#')
    const found = file === '' ? page : path.join(path.dirname(page), file)
    if (!existsSync(path.join(root, found))) problems.push(`${page}: ${target} does not exist`)
    else if (heading !== undefined && !headingsOf(found).has(heading))
      problems.push(`${page}: ${target}: the page has no such heading`)
  }
}

// If the pattern matched no files, no problems would be reported.
if (links < 100) problems.push(`only ${links} links were found`)

const runnable = (page: string): string[] =>
  page === 'docs/guide/webhooks.md' ? ['sh', 'js', 'python', 'perl'] : ['sh']
const blocks = pagesWithBlocks().flatMap(blocksOf)
for (const { page, line, language, mark } of blocks) {
  if (!mark) problems.push(`${page}:${line}: mark the block as run or not run (proofs/docs/blocks.ts)`)
  else if (mark.isRun && !runnable(page).includes(language))
    problems.push(`${page}:${line}: "${language}" blocks are not run on this page`)
}
if (blocks.length < 100) problems.push(`only ${blocks.length} blocks were found`)

const placed = new Set(sitePages.map(({ file }) => file))
for (const page of pages) {
  if (page.startsWith('docs/') && !placed.has(page)) problems.push(`${page}: add it to site/pages.ts`)
}
for (const file of placed) {
  if (!pages.includes(file)) problems.push(`site/pages.ts: ${file} does not exist`)
}

process.stdout.write(`${pages.length} pages with ${links} links and ${blocks.length} code blocks checked.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1

/** The page without its code blocks. */
function prose(page: string): string {
  return readFileSync(path.join(root, page), 'utf8')
    .replace(/^```.*?^```$/gms, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ''))
}

function linksOf(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
}

/** The anchors of the page's headings. */
function headingsOf(page: string): Set<string> {
  const headings = prose(page).matchAll(/^#+ (.*)$/gm)
  return new Set([...headings].map(([, text = '']) => slugify(text)))
}
