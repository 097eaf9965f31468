import { useRef, useState } from 'react'
import { send } from '../../../api/client.ts'

/**
 * An export of the audit log, read as a stream. The server sends it in one response; only the last line proves that
 * nothing is missing. The file is saved after that line has arrived.
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

/** A stream without data for this long is considered broken. */
const stallMs = 60_000
const lineBreak = 10

/** Exports one project or everything. */
export function useExport(projectId: number | undefined, save: (file: Blob) => void) {
  const [state, setState] = useState<Export>({ state: 'idle' })
  const stop = useRef<AbortController>(undefined)
  const start = async () => {
    const stopped = new AbortController()
    stop.current = stopped
    setState({ state: 'running', progress: { rows: 0, bytes: 0 } })
    try {
      const { file, progress } = await read(projectId, stopped.signal, (soFar) =>
        setState({ state: 'running', progress: soFar }),
      )
      save(file)
      setState({ state: 'done', progress })
    } catch (error) {
      setState(
        stopped.signal.aborted ? { state: 'idle' } : { state: 'failed', message: (error as Error).message },
      )
    }
  }
  return { state, start: () => void start(), stop: () => stop.current?.abort() }
}

async function read(
  projectId: number | undefined,
  stopped: AbortSignal,
  report: (progress: Progress) => void,
): Promise<{ file: Blob; progress: Progress }> {
  const stall = new AbortController()
  const signal = AbortSignal.any([stopped, stall.signal])
  const query = projectId === undefined ? {} : { project_id: projectId }
  const { body } = await send('audit.export', { query, signal })
  if (!body) throw new Error('The server sent an empty response.')
  const parts: Uint8Array<ArrayBuffer>[] = []
  const progress = { rows: 0, bytes: 0 }
  const reader = body.getReader()
  for (;;) {
    const timer = setTimeout(() => stall.abort(), stallMs)
    const { done, value } = await reader
      .read()
      .catch(() => {
        throw new Error('The connection was lost during the export. Nothing was saved. Try again.')
      })
      .finally(() => clearTimeout(timer))
    if (done) break
    parts.push(value)
    progress.bytes += value.length
    for (const byte of value) if (byte === lineBreak) progress.rows++
    report({ ...progress })
  }
  const file = new Blob(parts, { type: 'application/x-ndjson' })
  const { rows } = await lastLineOf(file)
  return { file, progress: { rows, bytes: file.size } }
}

/** An upper bound on the length of the last line. */
const tailBytes = 16_384

/** The server's row count, present only if the export is complete. */
async function lastLineOf(file: Blob): Promise<{ rows: number }> {
  const tail = await file.slice(-tailBytes).text()
  const line = tail.trimEnd().split('\n').at(-1) ?? ''
  try {
    const { type, rows } = JSON.parse(line) as { type?: unknown; rows?: unknown }
    if (tail.endsWith('\n') && type === 'end' && typeof rows === 'number') return { rows }
  } catch {
    // An incomplete line, reported below.
  }
  throw new Error('The export is incomplete. Nothing was saved. Try again.')
}
