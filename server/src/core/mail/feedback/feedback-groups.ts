import { FairGroups } from '../../../platform/batching/fair-groups.ts'
import type { Cell, Cells } from '../../../platform/db/cells.ts'
import { madeAt } from '../../../platform/ids.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { findAddress, type RecipientKey } from './feedback.sql.ts'
import {
  applyFeedback,
  type Feedback,
  type FeedbackResult,
  type FeedbackRules,
  reportCount,
} from './feedback.ts'
import { traceFeedback } from './trace-feedback.ts'

export interface FeedbackGroupsOptions extends FeedbackRules {
  cells: Pick<Cells, 'ofShard'>
  log: Logger
}

const maxGroup = 200
const groupsAtOnce = 2
/** The fixed cost of a group is that of several reports, so a report waits for others. Senders do not notice this. */
const [gatherMs, gatherItems, overlapMs] = [20, 20, 40]

/**
 * Applies the reports of all sources in groups, with one transaction per group and cell. A report that makes its
 * transaction fail does not fail the others (platform/batching/split-on-failure.ts). Shards are served round-robin,
 * because a report's project is not known before it is applied.
 */
export class FeedbackGroups {
  readonly #options: FeedbackGroupsOptions
  readonly #groups = new Map<Cell, FairGroups<Feedback, FeedbackResult>>()

  constructor(options: FeedbackGroupsOptions) {
    this.#options = options
  }

  /** Resolves after the commit. Rejects if the sender has to retry the report. */
  async apply(feedback: Feedback): Promise<FeedbackResult> {
    const { cells, log } = this.#options
    const cell = cells.ofShard(feedback.shard)
    const began = new Date()
    const outcome = await this.#groupsOf(cell).submit(feedback)
    const { messageId: message_id, recipientNo: recipient_no, attempt, kind } = feedback
    reportCount.add({ kind, outcome })
    await traceFeedback(cell.mail, feedback, { outcome, began })
    const line = { message_id, recipient_no, attempt, kind, outcome }
    if (outcome === 'unknown') log.warn(line, 'report ignored, unknown message')
    else log.debug(line, 'report processed')
    return outcome
  }

  /** The recipient's address; undefined if the recipient does not exist. */
  addressOf(recipient: RecipientKey): Promise<string | undefined> {
    return this.#options.cells.ofShard(recipient.shard).mail.readOne((tx) => findAddress(tx, recipient))
  }

  #groupsOf(cell: Cell): FairGroups<Feedback, FeedbackResult> {
    const existing = this.#groups.get(cell)
    if (existing) return existing
    const groups = new FairGroups<Feedback, FeedbackResult>(
      (group) => cell.mail.transaction((tx) => applyFeedback(tx, group, this.#options)),
      {
        groupsAtOnce,
        gatherMs,
        gatherItems,
        overlapMs,
        tenantOf: ({ shard }) => shard,
        // A group is planned for all days of its messages, so reports about old messages have their own groups.
        kindOf: ({ messageId }) => (isOld(messageId) ? 'large' : 'small'),
        newRoom: () => {
          let room = maxGroup
          return () => --room >= 0
        },
      },
    )
    this.#groups.set(cell, groups)
    return groups
  }
}

const oldMs = 3 * 24 * 3600_000

const isOld = (messageId: string): boolean => Date.now() - madeAt(messageId).getTime() > oldMs
