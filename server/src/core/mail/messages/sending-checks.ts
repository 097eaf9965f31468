import { PosternError } from '../../../platform/errors.ts'
import type { ApiKeyRow } from '../../control/api-keys/api-keys.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import type { Facts } from './acceptance.sql.ts'

// Checks whether a sender can send, performed when a message is accepted. An administrator cannot bypass them
// by providing a reason. In this order:
//
//   1. the project is not locked
//   2. its subscription is active
//   3. the sender's domain belongs to the project, is verified and, for a bound API key, is the key's domain
//   4. the project is allowed to use the domain's provider
//
// Authentication precedes them (customer/authenticate-request.ts). Validation, suppressions and quotas follow
// (acceptance.ts).

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

/** Null: the project is not billed. */
const sendingStatuses: readonly (string | null)[] = [null, 'trialing', 'active', 'past_due']

export const maySend = (subscription: string | null): boolean => sendingStatuses.includes(subscription)

/** This installation's rules. */
export interface SendingRules {
  /** The providers that are configured. */
  providers: ReadonlySet<string>
  byteLimits: ByteLimits
}

interface CheckInput {
  sender: Sender
  /** Null if `from` could not be parsed. */
  senderDomain: string | null
  facts: Facts
  providers: ReadonlySet<string>
}

interface SendingCheck {
  name: 'project_lock' | 'subscription' | 'sender_domain' | 'provider'
  refusal: (input: CheckInput) => PosternError | undefined
}

/** The one list of checks: acceptance returns the first refusal, and explain.ts shows the result of each. */
export const sendingChecks: readonly SendingCheck[] = [
  { name: 'project_lock', refusal: ({ facts }) => lockRefusal(facts) },
  { name: 'subscription', refusal: ({ facts }) => subscriptionRefusal(facts) },
  { name: 'sender_domain', refusal: domainRefusal },
  { name: 'provider', refusal: providerRefusal },
]

export function refusalOf(
  sender: Sender,
  senderDomain: string | null,
  facts: Facts | undefined,
  providers: ReadonlySet<string>,
): PosternError | undefined {
  if (!facts) return missingProject(sender.projectId)
  const input = { sender, senderDomain, facts, providers }
  for (const { refusal } of sendingChecks) {
    const refused = refusal(input)
    if (refused) return refused
  }
  return undefined
}

const missingProject = (id: number): PosternError =>
  new PosternError('not_found', `There is no project ${id}.`)

/** `facts` is undefined if the project was deleted. */
export const projectRefusal = (
  projectId: number,
  facts: Pick<Facts, 'is_locked' | 'subscription'> | undefined,
): PosternError | undefined =>
  facts ? (lockRefusal(facts) ?? subscriptionRefusal(facts)) : missingProject(projectId)

const lockRefusal = ({ is_locked }: Pick<Facts, 'is_locked'>): PosternError | undefined =>
  is_locked
    ? new PosternError(
        'project_locked',
        'This project is locked and cannot send. Contact the operator of this service.',
      )
    : undefined

const subscriptionRefusal = ({ subscription }: Pick<Facts, 'subscription'>): PosternError | undefined =>
  maySend(subscription)
    ? undefined
    : new PosternError(
        'subscription_inactive',
        `This project's subscription is "${subscription}". The project cannot send until the subscription is active again.`,
      )

function domainRefusal({
  sender: { apiKey },
  senderDomain: name,
  facts,
}: CheckInput): PosternError | undefined {
  if (name === null) return undefined
  const refuse = (why: string) => new PosternError('domain_not_verified', why)
  // The error does not reveal whether the project has the other domain.
  if (apiKey?.domainId != null && apiKey.domainId !== facts.domain_id) {
    return refuse(`This API key is restricted to one domain and cannot send from "${name}".`)
  }
  if (facts.domain_id === null) {
    return refuse(`"${name}" is not a domain of this project. Add it and publish its DNS records.`)
  }
  if (!facts.is_verified || facts.identity_id === null) {
    return refuse(`"${name}" is not verified. Publish its DNS records and request a check.`)
  }
  return undefined
}

function providerRefusal({
  senderDomain: name,
  facts: { provider, allow_service_mta },
  providers,
}: CheckInput): PosternError | undefined {
  if (name === null) return undefined
  if (provider !== null && !providers.has(provider)) {
    return new PosternError(
      'provider_not_allowed',
      `"${name}" uses the provider "${provider}", which is not configured on this installation. Edit the domain.`,
    )
  }
  if (provider === 'service' && !allow_service_mta) {
    return new PosternError(
      'provider_not_allowed',
      `"${name}" uses the operator's mail servers, which this project is not allowed to use. ` +
        'Ask the operator to set "allow_service_mta".',
    )
  }
  return undefined
}
