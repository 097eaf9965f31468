import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/**
 * The code blocks of the documentation. A comment before each block, invisible on the rendered page, determines how it
 * is tested:
 *
 * - `<!-- run -->`: it is run unchanged, by `npm run prove:install` for the installation page and by `npm run
 *   prove:docs` for all other pages.
 * - `<!-- run: fails with 422 -->`: the same, but one of its commands must fail with that HTTP status or exit code.
 *   Several values are separated by commas.
 * - `<!-- not run: … -->`: it is not run, for the reason stated.
 */
export interface Block {
  page: string
  /** The line number of the fence, starting at 1. */
  line: number
  language: string
  text: string
  /** Undefined if the block has no comment. */
  mark: Mark | undefined
}

type Mark = { isRun: true; fails: string[] } | { isRun: false }

const root = path.resolve(import.meta.dirname, '../..')

/** Decision records are excluded: their blocks are illustrations. */
export const pagesWithBlocks = (): string[] =>
  globSync(['README.md', 'CONTRIBUTING.md', 'bench/README.md', 'proofs/README.md', 'docs/**/*.md'], {
    cwd: root,
    exclude: (file) => file.includes('decisions'),
  }).sort()

export function blocksOf(page: string): Block[] {
  const lines = readFileSync(path.join(root, page), 'utf8').split('\n')
  const blocks: Block[] = []
  let open: (Block & { indent: string }) | undefined
  for (const [index, line] of lines.entries()) {
    const fence = /^(?<indent> *)```(?<language>\S*)/.exec(line)?.groups
    if (open && fence) {
      const { indent: _, ...block } = open
      blocks.push(block)
      open = undefined
    } else if (open) open.text += `${line.slice(open.indent.length)}\n`
    else if (fence) {
      const { indent = '', language = '' } = fence
      open = { page, line: index + 1, language, text: '', mark: markOf(lines[index - 1] ?? ''), indent }
    }
  }
  return blocks
}

function markOf(line: string): Mark | undefined {
  const run = /^ *<!-- run(?:: fails with (?<fails>\d+(?:, \d+)*))? -->$/.exec(line)
  if (run) return { isRun: true, fails: run.groups?.['fails']?.split(', ') ?? [] }
  return /^ *<!-- not run: .*\S -->$/.test(line) ? { isRun: false } : undefined
}
