import type { Command } from './command.ts'
import { apiPart, intakePart, serve, workerPart } from './serve.ts'

export const all: Command = {
  run: (args) => serve('postern all', args, [apiPart, workerPart, intakePart]),
}
