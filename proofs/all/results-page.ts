import { table } from '../../bench/figures.ts'
import type { RowResult } from './bookkeeping.ts'
import type { Row } from './rows.ts'

const heading = '## Full runs'
const intro =
  '`npm run prove:all` writes this table: the latest full run of each row. *Missed* means that all counts were correct, but a\n' +
  'speed, a duration or a ratio did not reach its goal; *failed* means that a count was wrong or the run crashed.'
const head = ['', 'what', 'verdict', 'figures', 'seed', 'date', 'commit', 'duration', 'machine']

/** Replaces the row's line in the table of full runs, or adds it. All other text is unchanged. */
export function withResult(page: string, rows: readonly Row[], result: RowResult): string {
  const { before, lines, after } = sectionOf(page)
  const kept = lines.filter((line) => idOf(line) !== result.id)
  const order = rows.map(({ id }) => id)
  const title = rows.find(({ id }) => id === result.id)?.title ?? ''
  const positionOf = (line: string): number => order.indexOf(idOf(line))
  const sorted = [...kept, lineOf(title, result)].sort((one, other) => positionOf(one) - positionOf(other))
  return `${before}${heading}\n\n${intro}\n\n${table(head, [])}\n${sorted.join('\n')}\n\n${after}`
}

interface Section {
  before: string
  /** The lines of the table, without its head. */
  lines: string[]
  after: string
}

/** A new section is placed before the first one. */
function sectionOf(page: string): Section {
  const start = page.indexOf(`${heading}\n`)
  if (start < 0) {
    const first = page.search(/^## /m)
    const end = first < 0 ? page.length : first
    return { before: page.slice(0, end), lines: [], after: page.slice(end) }
  }
  const rest = page.slice(start + heading.length)
  const next = rest.search(/^## /m)
  const section = next < 0 ? rest : rest.slice(0, next)
  return {
    before: page.slice(0, start),
    lines: section.split('\n').filter((line) => /^\| [A-Z]\d+ \|/.test(line)),
    after: next < 0 ? '' : rest.slice(next),
  }
}

const idOf = (line: string): string => line.split(' ')[1] ?? ''

function lineOf(title: string, result: RowResult): string {
  const { id, verdict, figures, seed, startedAt, commit, seconds, machine } = result
  const cells = [
    id,
    title,
    `**${verdict}**`,
    figures,
    seed === null ? '–' : String(seed),
    `${startedAt.slice(0, 16).replace('T', ' ')}Z`,
    commit.slice(0, 8),
    durationOf(seconds),
    machine,
  ]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')).join(' | ')} |`
}

export function durationOf(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}
