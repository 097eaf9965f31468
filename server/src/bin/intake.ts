import { command } from './command.ts'
import { intakePart } from './intake-part.ts'
import { serve } from './serve.ts'

export const intake = command('intake', { '': () => serve('intake', [intakePart]) })
