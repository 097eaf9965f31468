/**
 * Exports as files: a full export and any number of exports that continue it. Each file is sorted by (chain, seq), so the
 * files can be merged without loading them into memory.
 */
import { UsageError } from '../../../platform/errors.ts'
import type { EndLine } from './export.ts'
import { type Line, lineOfFile } from './export-lines.ts'
import { badFile, type FirstBad } from './findings.ts'
import { linesOf, readTail } from './text-file.ts'

export interface ExportFile {
  path: string
  end: EndLine
  lines: () => AsyncIterable<{ text: string }>
}

/** A line, or the problem with it. */
export type Read = Line | { bad: FirstBad }

/** Reads only the last line of each file. */
export async function openExports(paths: string[]): Promise<{ files: ExportFile[]; bad: FirstBad | null }> {
  const files: ExportFile[] = []
  for (const path of paths) {
    const { lastLine = '', torn } = await readTail(path)
    const end = lineOfFile(lastLine)?.value
    if (torn !== '' || !isEnd(end)) {
      return {
        files,
        bad: badFile(`${path} is truncated: its last line, with the number of rows, is missing.`),
      }
    }
    files.push({ path, end, lines: () => linesOf(path) })
  }
  return { files, bad: findGap(files) }
}

const isEnd = (value: unknown): value is EndLine => {
  const { type, rows, checkpoints, at, project, after, next } = (value ?? {}) as Partial<EndLine>
  return (
    type === 'end' &&
    [rows, checkpoints, project ?? 0].every(Number.isSafeInteger) &&
    !Number.isNaN(Date.parse(at ?? '')) &&
    [after ?? '', next].every((snapshot) => typeof snapshot === 'string')
  )
}

function findGap(files: ExportFile[]): FirstBad | null {
  if (files.filter(({ end }) => end.after === null).length !== 1) {
    throw new UsageError('Pass exactly one full export and, optionally, exports that continue it.')
  }
  const rest = files.filter(({ end }) => end.after !== null)
  let last = files.find(({ end }) => end.after === null)
  while (last) {
    const { next } = last.end
    const i = rest.findIndex(({ end }) => end.after === next)
    last = i === -1 ? undefined : rest.splice(i, 1)[0]
  }
  const [unlinked] = rest
  return unlinked
    ? badFile(`${unlinked.path} continues an export that was not provided: an export is missing.`)
    : null
}

const typeOf = (text: string): string => /^\{"type" ?: ?"(\w+)"/.exec(text)?.[1] ?? ''

export async function* checkpointsIn({ path, end, lines }: ExportFile): AsyncGenerator<Read> {
  let found = 0
  for await (const { text } of lines()) {
    if (typeOf(text) !== 'checkpoint') continue
    found++
    yield lineOfFile(text) ?? { bad: badFile(`${path} contains a checkpoint that is not JSON.`) }
  }
  if (found === end.checkpoints) return
  yield {
    bad: badFile(`${path} contains ${found} checkpoints, but its last line states ${end.checkpoints}.`),
  }
}

async function* rowsIn({ path, end, lines }: ExportFile): AsyncGenerator<Read> {
  let number = 0
  let found = 0
  for await (const { text } of lines()) {
    number++
    const type = typeOf(text)
    if (type === 'checkpoint' || type === 'end') continue
    const line = lineOfFile(text)
    if (line === undefined || !['audit', 'person'].includes(type)) {
      yield { bad: badFile(`Line ${number} of ${path} is not a line of an export.`) }
      return
    }
    if (type === 'person') {
      yield { bad: strayPerson(line) }
      return
    }
    found++
    yield line
  }
  if (found === end.rows) return
  yield { bad: badFile(`${path} contains ${found} audit rows, but its last line states ${end.rows}.`) }
}

export function strayPerson({ value }: Line): FirstBad {
  const { audit_id } = value as { audit_id: unknown }
  return badFile(`There is personal data for the audit row with the id ${audit_id}, which does not exist.`)
}

/** All rows of all files, merged in order. */
export async function* mergedRows(files: ExportFile[]): AsyncGenerator<Read> {
  const sources = files.map((file) => rowsIn(file))
  const fronts = await Promise.all(sources.map((source) => source.next()))
  for (;;) {
    let least: number | undefined
    for (const [i, front] of fronts.entries()) {
      if (front.done) continue
      if (least === undefined || compare(front.value, fronts[least]?.value) < 0) least = i
    }
    const source = least === undefined ? undefined : sources[least]
    if (least === undefined || source === undefined) return
    yield fronts[least]?.value as Read
    fronts[least] = await source.next()
  }
}

/** Problems sort first. */
function compare(a: Read, b: Read | undefined): number {
  const [x, y] = [positionOf(a), positionOf(b)]
  return x.chain - y.chain || x.seq - y.seq
}

const positionOf = (read: Read | undefined): { chain: number; seq: number } =>
  read === undefined || 'bad' in read
    ? { chain: -1, seq: -1 }
    : (read.value as { chain: number; seq: number })
