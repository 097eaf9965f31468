import type { FeedbackRules } from '../../core/mail/feedback/feedback.ts'
import { FeedbackGroups } from '../../core/mail/feedback/feedback-groups.ts'
import type { Cells } from '../../platform/db/cells.ts'
import { createLogger, type Logger } from '../../platform/telemetry/log.ts'
import { ampleByteLimits } from '../fixtures/byte-limits.ts'

export const feedbackRules: FeedbackRules = {
  suppressOn: new Set(['5.1.1', '5.2.1']),
  name: 'bounces.example.org',
  byteLimits: ampleByteLimits,
}

export const feedbackIn = (cells: Cells, log: Logger = createLogger('silent')): FeedbackGroups =>
  new FeedbackGroups({ cells, log, ...feedbackRules })
