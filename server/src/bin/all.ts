import type { Command } from './command.ts'
import { apiPart, serve, workerPart } from './serve.ts'

export const all: Command = {
  summary: 'api and worker in one process, for a small installation.',
  run: (args) => serve('postern all', args, [apiPart, workerPart]),
}
