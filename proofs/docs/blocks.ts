import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/**
 * The code blocks of the documentation. A comment in front of each block, invisible on the rendered page, says what is done
 * with it:
 *
 * - `<!-- run -->`: it is run unchanged, by `npm run prove:install` on the installation page, by `npm run prove:docs` on all
 *   others.
 * - `<!-- run: fails with 422 -->`: the same, and one of its commands fails with that HTTP status or that exit code.
 *   Several are separated by commas.
 * - `<!-- not run: … -->`: it is not run, with the reason.
 */
export interface Block {
  page: string
  /** Of the fence, counted from 1. */
  line: number
  language: string
  text: string
  /** Undefined: nobody has said what is done with it. */
  mark: Mark | undefined
}

type Mark = { isRun: true; fails: string[] } | { isRun: false }

const root = path.resolve(import.meta.dirname, '../..')

/** Decisions are not for following: they show what was thought of. */
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
