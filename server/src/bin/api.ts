import { apiPart } from './api-part.ts'
import { command } from './command.ts'
import { serve } from './serve.ts'

export const api = command('api', { '': () => serve('api', [apiPart]) })
