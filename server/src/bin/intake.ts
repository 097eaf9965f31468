import type { Command } from './command.ts'
import { intakePart, serve } from './serve.ts'

export const intake: Command = {
  summary: 'Take in mail of customers, bounces, delivery reports and complaints by SMTP.',
  run: (args) => serve('postern intake', args, [intakePart]),
}
