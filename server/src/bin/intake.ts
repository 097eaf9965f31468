import type { Command } from './command.ts'
import { intakePart, serve } from './serve.ts'

export const intake: Command = {
  run: (args) => serve('postern intake', args, [intakePart]),
}
