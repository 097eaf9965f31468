import { apiPart } from './api-part.ts'
import { command } from './command.ts'
import { intakePart } from './intake-part.ts'
import { serve } from './serve.ts'
import { workerPart } from './worker-part.ts'

export const all = command('all', { '': () => serve('all', [apiPart, workerPart, intakePart]) })
