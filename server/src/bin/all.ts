import type { Command } from './command.ts'
import { apiPart, intakePart, serve, workerPart } from './serve.ts'

export const all: Command = {
  summary: 'api, worker and intake in one process, for a small installation.',
  run: (args) => serve('postern all', args, [apiPart, workerPart, intakePart]),
}
