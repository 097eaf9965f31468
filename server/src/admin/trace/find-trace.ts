import Type from 'typebox'
import { recordLookup } from '../../core/control/audit/lookups.ts'
import { traceText } from '../../core/mail/trace/trace.ts'
import { Trace } from '../../core/mail/trace/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const id = 'trace.find'

export const findTraceQuery = adminQuery({
  id,
  path: '/admin/trace',
  summary: 'Find the message that a text refers to',
  description:
    'Returns up to 50 messages, of all projects, that the text refers to. The text can be a header as a mail client shows it, an abuse report (ARF), a delivery report (DSN), a line of an MTA log, or a single reference: a return path, an `X-Postern-Ref`, a Message-ID, a queue id, or an address with or without a day. Signed references are certain, and everything else is marked as a guess. Addresses are looked up only if no other reference is found. The first 50 references are looked up. The request is a POST because the text can be long; it changes nothing, and is recorded in `audit.lookups`.',
  params: NoParams,
  query: {},
  body: {
    fields: {
      text: Type.String({
        minLength: 1,
        maxLength: 65_536,
        description: 'The text, without changes.',
      }),
    },
    example: { text: 'Message-ID: <01939f0e-7b1a-7c3e-9d2f-0123456789ab@acme.example>' },
    limitBytes: 256 * 1024,
  },
  answer: Trace,
  async run({ db, cells, returnPathKeys, actorId, requestId, body }) {
    const { question, ...answer } = await traceText({ db, cells, keys: returnPathKeys }, body.text)
    const projectIds = answer.data.map(({ project_id }) => project_id)
    await recordLookup(db, { actorId, operation: id, question, projectIds, requestId })
    return { answer }
  },
})
