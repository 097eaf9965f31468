import type { Command } from './command.ts'
import { apiPart, serve } from './serve.ts'

export const api: Command = {
  summary: 'Serve the HTTP interface.',
  run: (args) => serve('postern api', args, [apiPart]),
}
