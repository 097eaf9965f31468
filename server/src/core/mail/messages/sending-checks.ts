import { PosternError } from '../../../platform/errors.ts'
import type { ApiKeyRow } from '../../control/api-keys/api-keys.ts'
import type { Facts } from './acceptance.sql.ts'

/**
 * May this be sent? Asked when a mail is accepted, in this order, and never set aside by an administrator's reason:
 * the project is not locked, its subscription is in force, the sender's domain is the project's and verified (and the
 * key's, if it is bound to one), the domain's provider is allowed to the project. What comes before (the key) is the
 * door's; what comes after (well formed, suppressions, quota) follows in acceptance.ts.
 */
export interface Sender {
  projectId: number
  apiKey: { id: number; isTest: boolean; domainId: number | null } | null
  userId: number | null
}

export const senderOfKey = (key: Pick<ApiKeyRow, 'id' | 'project_id' | 'is_test' | 'domain_id'>): Sender => ({
  projectId: key.project_id,
  apiKey: { id: key.id, isTest: key.is_test, domainId: key.domain_id },
  userId: null,
})

/** Null: nothing to bill. */
const sendingStatuses: readonly (string | null)[] = [null, 'trialing', 'active', 'past_due']

export const maySend = (subscription: string | null): boolean => sendingStatuses.includes(subscription)

export function refusalOf(
  sender: Sender,
  senderDomain: string | null,
  facts: Facts | undefined,
  providers: ReadonlySet<string>,
): PosternError | undefined {
  const refused = projectRefusal(sender.projectId, facts)
  if (!facts || refused) return refused
  if (senderDomain === null) return undefined
  return domainRefusal(sender, senderDomain, facts, providers)
}

/** Undefined facts: the project is gone. */
export function projectRefusal(
  projectId: number,
  facts: Pick<Facts, 'is_locked' | 'subscription'> | undefined,
): PosternError | undefined {
  if (!facts) return new PosternError('not_found', `There is no project ${projectId}.`)
  if (facts.is_locked) {
    return new PosternError(
      'project_locked',
      'This project is locked and sends nothing. Ask the operator of this service why.',
    )
  }
  if (!maySend(facts.subscription)) {
    return new PosternError(
      'subscription_inactive',
      `The subscription of this project is "${facts.subscription}", and it sends nothing until it is active again.`,
    )
  }
  return undefined
}

function domainRefusal(
  { apiKey }: Sender,
  name: string,
  facts: Facts,
  providers: ReadonlySet<string>,
): PosternError | undefined {
  const refuse = (why: string) => new PosternError('domain_not_verified', why)
  // Whether the project has the other one is not told.
  if (apiKey?.domainId != null && apiKey.domainId !== facts.domain_id) {
    return refuse(`This API key sends from one domain only, and "${name}" is another.`)
  }
  if (facts.domain_id === null) {
    return refuse(`"${name}" is not a domain of this project. Add it and publish its DNS records.`)
  }
  if (!facts.is_verified || facts.identity_id === null) {
    return refuse(`"${name}" is not verified. Publish its DNS records and ask for a check.`)
  }
  if (facts.provider !== null && !providers.has(facts.provider)) {
    return new PosternError(
      'provider_not_allowed',
      `"${name}" sends through "${facts.provider}", by which this installation does not send. Edit the domain.`,
    )
  }
  if (facts.provider === 'service' && !facts.allow_service_mta) {
    return new PosternError(
      'provider_not_allowed',
      `"${name}" sends through the operator's own mail servers, which this project may not use. ` +
        'Ask the operator to allow it: "allow_service_mta".',
    )
  }
  return undefined
}
