import Type from 'typebox'
import { Problem } from '../platform/http/problem.ts'

const status = (word: string) => ({
  content: { 'application/json': { schema: Type.Object({ status: Type.Literal(word) }) } },
})

export const healthzSchema = {
  operationId: 'health.live',
  tags: ['health'],
  summary: 'Whether the process lives',
  description: 'Looks at nothing but itself. A process that does not answer is to be started anew.',
  security: [],
  response: { 200: { description: 'It lives.', ...status('ok') } },
}

export const readyzSchema = {
  operationId: 'health.ready',
  tags: ['health'],
  summary: 'Whether the process can do its work',
  description:
    'The database answers, no migration is missing, and the process is not about to stop. Send requests to processes that say so.',
  security: [],
  response: {
    200: { description: 'It can.', ...status('ready') },
    503: {
      description: '`unavailable`: the message says why.',
      content: { 'application/json': { schema: Problem } },
    },
  },
}
