import { command } from './command.ts'
import { intakePart, serve } from './serve.ts'

export const intake = command('intake', { '': () => serve('intake', [intakePart]) })
