import {
  discardChange,
  discardView,
  readDiscard,
  startDiscard,
} from '../../core/control/discards/discards.ts'
import { Discard, DiscardFields, type DiscardRequest } from '../../core/control/discards/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { acceptedBefore, type DiscardPreload, preloadDiscard } from '../../core/mail/dispatch/discards.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const discardQueueOperation = adminOperation({
  id: 'queue.discard',
  kind: 'enqueue',
  path: '/admin/projects/:project_id/queue/discard',
  summary: "Discard a project's queued mail",
  description:
    'Discards the queued recipients that match all given fields, or all queued recipients if no field is given. Only messages accepted before the request match. Mail that is being sent, or that awaits a report, is not discarded; what is then due for another attempt is. Forwarded mail in the queue also matches, and its senders get no bounce. Each discarded recipient fails with the event `message.failed`. A worker does this asynchronously; `discards.show` returns the progress, and `discards.stop` stops it. Only one discard per project can run at a time.',
  params: ProjectParams,
  body: DiscardFields,
  example: {
    older_than: '2026-11-14T09:30:00.000Z',
    tag: 'newsletter',
    recipient_domain: null,
    reason: 'The customer sent the mailing twice',
  },
  answer: Discard,
  hasVersion: false,
  preload: (mail, { project_id }, body) => preloadOf(mail, project_id, body),
  preloadFor: 'detail',
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target, body, preloaded, reason }) {
    const wanted = readDiscard(body)
    const accepted_before = preloaded?.accepted_before ?? (await acceptedBefore(tx, wanted))
    const matched = preloaded?.matched ?? null
    const row = await startDiscard(tx, target.id, {
      ...{ ...wanted, accepted_before, matched, reason: reason ?? '' },
    })
    return {
      audit: { projectId: target.id, change: discardChange(null, row) },
      effects: [
        preloaded
          ? `Recipients that will be discarded: ${text(preloaded.matched)} of ${text(preloaded.queued)}.`
          : 'The queue is too large or too busy to count the recipients that will be discarded.',
        'Each of them fails with an event. They cannot be restored.',
      ],
      warnings:
        preloaded && preloaded.leaving > 0
          ? [
              `Recipients that are not discarded, because they are being sent or await a report: ${text(preloaded.leaving)}.`,
            ]
          : [],
      answer: discardView(row, 0),
      version: null,
    }
  },
})

const text = (count: number): string => count.toLocaleString('en')

/** Undefined for an invalid request, which `run` rejects. */
async function preloadOf(
  mail: ReadTx,
  projectId: number,
  body: DiscardRequest,
): Promise<DiscardPreload | undefined> {
  let wanted: ReturnType<typeof readDiscard>
  try {
    wanted = readDiscard(body)
  } catch {
    return undefined
  }
  return preloadDiscard(mail, projectId, wanted)
}
