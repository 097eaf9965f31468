import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { blocksOf, pagesWithBlocks } from '../proofs/docs/blocks.ts'

/**
 * Every link to a page, an image or a heading has a target, and every code block says whether it is run
 * (proofs/docs/blocks.ts).
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
      problems.push(`${page}: ${target}: the page does not have this heading`)
  }
}

// A pattern that finds nothing finds nothing wrong.
if (links < 100) problems.push(`only ${links} links were found`)

const runnable = (page: string): string[] =>
  page === 'docs/guide/webhooks.md' ? ['sh', 'js', 'python', 'perl'] : ['sh']
const blocks = pagesWithBlocks().flatMap(blocksOf)
for (const { page, line, language, mark } of blocks) {
  if (!mark) problems.push(`${page}:${line}: say above the block whether it is run (proofs/docs/blocks.ts)`)
  else if (mark.isRun && !runnable(page).includes(language))
    problems.push(`${page}:${line}: nothing runs a block of "${language}" there`)
}
if (blocks.length < 100) problems.push(`only ${blocks.length} blocks were found`)

process.stdout.write(`${pages.length} pages with ${links} links and ${blocks.length} code blocks checked.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1

/** A page without its code. */
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

/** As GitHub makes them: lower case, without marks, with hyphens for spaces. */
function headingsOf(page: string): Set<string> {
  const headings = prose(page).matchAll(/^#+ (.*)$/gm)
  return new Set(
    [...headings].map(([, text = '']) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  )
}
