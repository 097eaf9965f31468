import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import type { Repeatable } from './accept-request.ts'
import { findFactsBeforeBody } from './before-body.sql.ts'
import { Quota } from './quota.ts'
import { projectRefusal, type Sender } from './sending-checks.ts'

/**
 * Rejects a request before its large body is read if the sender cannot send at all. The checks run in the
 * same order as in acceptance: the project is not locked, its subscription is active, it has a verified
 * domain, and its quotas are not used up. Returns undefined if the body should be read; acceptance then
 * decides. A repeated request is not rejected here: it gets the stored response.
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
      ? "This API key's domain is not verified. Publish its DNS records and request a check."
      : 'This project has no verified domain. Add a domain, publish its DNS records and request a check.',
  )
