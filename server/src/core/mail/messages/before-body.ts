import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import type { Repeatable } from './accept-request.ts'
import { findFactsBeforeBody } from './before-body.sql.ts'
import { Quota } from './quota.ts'
import { projectRefusal, type Sender } from './sending-checks.ts'

/**
 * Refuses a sender that cannot send anything before a large body is read. The checks are in the order of acceptance: the
 * project is not locked, its subscription is in force, it has a verified domain, and its quotas are not used up. Undefined:
 * read the body and let acceptance decide. A repeated request is not refused here: it gets the stored response.
 */
export async function refusalBeforeBody(
  tx: ReadTx,
  { projectId, apiKey }: Sender,
  repeatable: Pick<Repeatable, 'actor' | 'operation' | 'key'> | undefined,
  byteLimits: ByteLimits,
): Promise<PosternError | undefined> {
  const domainId = apiKey?.domainId ?? null
  const facts = await findFactsBeforeBody(tx, projectId, domainId, repeatable)
  if (facts?.is_repetition) return undefined
  const refused = projectRefusal(projectId, facts)
  if (!facts || refused) return refused
  if (!facts.has_domain) return domainMissing(domainId !== null)
  const used = [
    { period: 'day' as const, accepted: facts.accepted_today, stored_bytes: facts.stored_today },
    { period: 'month' as const, accepted: facts.accepted_this_month, stored_bytes: 0 },
  ]
  return new Quota(used, facts, byteLimits).take(1, 1)
}

const domainMissing = (isBound: boolean): PosternError =>
  new PosternError(
    'domain_not_verified',
    isBound
      ? 'The domain of this API key is not verified. Publish its DNS records and request a check.'
      : 'This project has no verified domain. Add a domain, publish its DNS records and request a check.',
  )
