import type { Command } from './command.ts'
import { serve, workerPart } from './serve.ts'

export const worker: Command = {
  summary: 'Do what nobody calls for: providers, DNS checks, audit checkpoints.',
  run: (args) => serve('postern worker', args, [workerPart]),
}
