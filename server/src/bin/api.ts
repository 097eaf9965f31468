import { command } from './command.ts'
import { apiPart, serve } from './serve.ts'

export const api = command('api', { '': () => serve('api', [apiPart]) })
