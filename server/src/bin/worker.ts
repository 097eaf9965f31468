import { command } from './command.ts'
import { serve } from './serve.ts'
import { workerPart } from './worker-part.ts'

export const worker = command('worker', { '': () => serve('worker', [workerPart]) })
