import { command } from './command.ts'
import { serve, workerPart } from './serve.ts'

export const worker = command('worker', { '': () => serve('worker', [workerPart]) })
