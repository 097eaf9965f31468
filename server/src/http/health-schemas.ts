import Type from 'typebox'
import { Problem } from '../platform/http/problem.ts'

const status = (word: string) => ({
  content: { 'application/json': { schema: Type.Object({ status: Type.Literal(word) }) } },
})

export const healthzSchema = {
  operationId: 'health.live',
  tags: ['health'],
  summary: 'Check that the process is running',
  description: 'Checks only that the process responds. Restart a process that does not respond.',
  security: [],
  response: { 200: { description: 'The process is running.', ...status('ok') } },
}

export const readyzSchema = {
  operationId: 'health.ready',
  tags: ['health'],
  summary: 'Check that the process is ready',
  description:
    'A process is ready if the database responds, all migrations are applied, and the process is not shutting down. Send requests only to ready processes. The result is cached for one second.',
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
                  'Returned only by a cell whose replica of the control data is too old. The cell then rejects new mail and pauses its queue, but still receives inbound mail.',
              }),
            ),
          }),
        },
      },
    },
    429: {
      description:
        '`rate_limited`: too many requests from this address. Try again after the time in `Retry-After`.',
      content: { 'application/json': { schema: Problem } },
    },
    503: {
      description: '`unavailable`: the process is not ready. The message states the reason.',
      content: { 'application/json': { schema: Problem } },
    },
  },
}
