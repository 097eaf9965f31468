import type { Command } from './command.ts'
import { serve, workerPart } from './serve.ts'

export const worker: Command = {
  run: (args) => serve('postern worker', args, [workerPart]),
}
