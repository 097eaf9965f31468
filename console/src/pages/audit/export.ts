import { useRef, useState } from 'react'
import { send } from '../../api/client.ts'

/**
 * An export as it comes in. The server sends all of it in one answer, as long as the audit is; only the last line tells
 * that nothing is missing. Nothing is saved before that line was seen.
 */
export interface Progress {
  rows: number
  bytes: number
}

export type Export =
  | { state: 'idle' }
  | { state: 'running'; progress: Progress }
  | { state: 'done'; progress: Progress }
  | { state: 'failed'; message: string }

/** A server that says nothing for so long will say no more. */
const stallMs = 60_000
const lineBreak = 10

/** Of one project, or of everything. */
export function useExport(projectId: number | undefined, save: (file: Blob) => void) {
  const [shown, show] = useState<Export>({ state: 'idle' })
  const stop = useRef<AbortController>(undefined)
  const start = async () => {
    const stopped = new AbortController()
    stop.current = stopped
    show({ state: 'running', progress: { rows: 0, bytes: 0 } })
    try {
      const { file, progress } = await read(projectId, stopped.signal, (so) =>
        show({ state: 'running', progress: so }),
      )
      save(file)
      show({ state: 'done', progress })
    } catch (error) {
      show(
        stopped.signal.aborted ? { state: 'idle' } : { state: 'failed', message: (error as Error).message },
      )
    }
  }
  return { shown, start: () => void start(), stop: () => stop.current?.abort() }
}

async function read(
  projectId: number | undefined,
  stopped: AbortSignal,
  tell: (progress: Progress) => void,
): Promise<{ file: Blob; progress: Progress }> {
  const stall = new AbortController()
  const signal = AbortSignal.any([stopped, stall.signal])
  const query = projectId === undefined ? {} : { project_id: projectId }
  const { body } = await send('audit.export', { query, signal })
  if (!body) throw new Error('The server sent nothing.')
  const parts: Uint8Array<ArrayBuffer>[] = []
  const progress = { rows: 0, bytes: 0 }
  const reader = body.getReader()
  for (;;) {
    const timer = setTimeout(() => stall.abort(), stallMs)
    const { done, value } = await reader
      .read()
      .catch(() => {
        throw new Error('The export was cut off on its way, and nothing was saved. Try again.')
      })
      .finally(() => clearTimeout(timer))
    if (done) break
    parts.push(value)
    progress.bytes += value.length
    for (const byte of value) if (byte === lineBreak) progress.rows++
    tell({ ...progress })
  }
  const file = new Blob(parts, { type: 'application/x-ndjson' })
  const { rows } = await lastLineOf(file)
  return { file, progress: { rows, bytes: file.size } }
}

/** Longer than the last line can be. */
const tailBytes = 16_384

/** What the server counted, which is only there if nothing was cut off. */
async function lastLineOf(file: Blob): Promise<{ rows: number }> {
  const tail = await file.slice(-tailBytes).text()
  const line = tail.trimEnd().split('\n').at(-1) ?? ''
  try {
    const { type, rows } = JSON.parse(line) as { type?: unknown; rows?: unknown }
    if (tail.endsWith('\n') && type === 'end' && typeof rows === 'number') return { rows }
  } catch {
    // Half a line, which is told below.
  }
  throw new Error('The export ends before its last line, and nothing was saved. Try again.')
}
