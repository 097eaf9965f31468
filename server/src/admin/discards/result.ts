import type { Static } from 'typebox'
import { type DiscardRow, discardChange, discardView } from '../../core/control/discards/discards.ts'
import type { Discard } from '../../core/control/discards/wire.ts'
import type { Discarded } from '../../core/mail/dispatch/discards.ts'
import { type MutationResult, unchanged } from '../operation.ts'

/** The result of stopping or resuming a discard. `discarded` is undefined if the mail database was unavailable. */
export const resultOf = (
  before: DiscardRow,
  after: DiscardRow,
  discarded: Discarded | undefined,
  effect: string,
): MutationResult<Static<typeof Discard>> => ({
  audit:
    after === before ? unchanged : { projectId: before.project_id, change: discardChange(before, after) },
  effects: after === before ? [] : [effect],
  warnings: [],
  answer: discardView(after, discarded?.(before.id) ?? null),
  version: null,
})
