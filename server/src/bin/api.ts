import type { Command } from './command.ts'
import { apiPart, serve } from './serve.ts'

export const api: Command = {
  run: (args) => serve('postern api', args, [apiPart]),
}
