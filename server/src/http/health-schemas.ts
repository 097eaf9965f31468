import Type from 'typebox'
import { Problem } from '../platform/http/problem.ts'

const status = (word: string) => ({
  content: { 'application/json': { schema: Type.Object({ status: Type.Literal(word) }) } },
})

export const healthzSchema = {
  operationId: 'health.live',
  tags: ['health'],
  summary: 'Whether the process lives',
  description: 'Checks the process only. Restart a process that does not answer.',
  security: [],
  response: { 200: { description: 'It lives.', ...status('ok') } },
}

export const readyzSchema = {
  operationId: 'health.ready',
  tags: ['health'],
  summary: 'Whether the process can do its work',
  description:
    'The database answers, no migration is missing, and the process is not about to stop. Send requests to processes that say so. An answer is kept for a second.',
  security: [],
  response: {
    200: {
      description: 'The process is ready.',
      content: {
        'application/json': {
          schema: Type.Object({
            status: Type.Literal('ready'),
            replica: Type.Optional(
              Type.Literal('stale', {
                description:
                  'Only in a cell, and only if its copy of control is too old: new mail of the cell is refused, and its queue waits. Inbound mail goes on.',
              }),
            ),
          }),
        },
      },
    },
    429: {
      description: '`rate_limited`: too many requests from this address; Retry-After says when to try again.',
      content: { 'application/json': { schema: Problem } },
    },
    503: {
      description: '`unavailable`: the message says why.',
      content: { 'application/json': { schema: Problem } },
    },
  },
}
