import { command } from './command.ts'
import { apiPart, intakePart, serve, workerPart } from './serve.ts'

export const all = command('all', { '': () => serve('all', [apiPart, workerPart, intakePart]) })
