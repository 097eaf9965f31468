import { nameOf, reasonOf } from './rules.ts'
import type { AuditedAct, LimitException, Resource, View } from './world.ts'

/** A mutation, independent of the options it is sent with. */
export interface Intent {
  operation: string
  params: Record<string, number | string>
  /** Without `reason`. */
  body: View
  /** If false, a 404 is expected. */
  exists: () => boolean
  /** The resource that `If-Match` is compared with; null for a create. */
  target: Resource | null
  /** Applies the rules without changing the model. Returns the outcome or the error code. */
  outcome: () => Outcome | string
}

export interface Outcome {
  /** Null if nothing changes. */
  change: { type: string; before: View | null; after: View | null } | null
  /** True if one of the changes always requires a reason. */
  needsReason?: boolean
  limit?: LimitException | null
  /** Contains `Unknown` for values that only the service can know; null for an empty body. */
  response: unknown
  version: number | null
  /**
   * Applies the outcome and the response's values to the model. Returns the audit rows to expect and the id of the
   * changed resource.
   */
  commit: (body: never) => { acts: AuditedAct[]; id: AuditedAct['of']; location?: string }
}

export type Kind = 'create' | 'edit' | 'rotate' | 'delete' | 'command' | 'enqueue'

const last = (operation: string): string => operation.split('.').at(-1) ?? ''

export const kindOf = (operation: string): Kind => {
  const verb = last(operation)
  if (verb === 'create' || verb === 'edit' || verb === 'rotate' || verb === 'delete') return verb
  if (verb === 'set-billing') return 'edit'
  return verb === 'test' || verb === 'replay' ? 'enqueue' : 'command'
}

export const needsReasonAlways = (operation: string): boolean =>
  ['rotate', 'delete'].includes(kindOf(operation)) ||
  /^(?:users\.edit|queue\.\w+|messages\.cancel|interventions\.\w+)$/.test(operation)

export const revealsSecret = (operation: string): boolean =>
  /^(?:endpoints|api-keys)\.(?:create|rotate)$/.test(operation)

/** The options that a mutation is sent with. */
export interface RequestOptions {
  /** As sent. */
  reason: string | undefined
  ifMatch: { text: string; holds: boolean } | undefined
  key: string | undefined
  isDryRun: boolean
}

/** A request whose response is replayed if the request is repeated. */
export interface Remembered {
  intent: Intent
  reason: string | undefined
  request: string
  status: number
  text: string
  etag: string | undefined
  location: string | undefined
}

/** First responses by operation and idempotency key. */
export type Memory = Map<string, Remembered>

export const memoryKey = (operation: string, key: string): string => `${operation} ${key}`

/** Normalizes a request. Two requests are equal if they have the same target and the same members, in any order. */
export const requestText = ({ params, body }: Intent, reason: string | undefined): string =>
  JSON.stringify(inOrder({ params, body: reason === undefined ? body : { ...body, reason } }))

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, inner]) => [key, inOrder(inner)]),
  )
}

export const statusOf: Record<string, number> = {
  not_found: 404,
  already_exists: 409,
  in_use: 409,
  request_in_progress: 409,
  secret_already_revealed: 409,
  domain_claimed: 409,
  last_owner: 409,
  last_administrator: 409,
  already_ended: 409,
  changed_since: 409,
  not_reversible: 409,
  stale_resource: 412,
  validation_failed: 422,
  reason_required: 422,
  limit_exceeded: 422,
  incomplete_configuration: 422,
  address_routes_unresolved: 422,
  plan_inactive: 422,
  provider_not_allowed: 422,
  idempotency_key_reused: 422,
}

export type Prediction =
  | { kind: 'refused'; error: string; location?: string | undefined }
  | { kind: 'repeated'; remembered: Remembered }
  | { kind: 'preview'; outcome: Outcome; needsReason: boolean }
  | { kind: 'done'; outcome: Outcome; reason: string | null }

const refused = (error: string): Prediction => ({ kind: 'refused', error })

/** Errors in order of precedence: invalid reason, 404, idempotent replay, 412, the operation's rules. */
export function predict(intent: Intent, options: RequestOptions, memory: Memory): Prediction {
  const { operation } = intent
  const reason = options.reason === undefined ? null : reasonOf(options.reason)
  if (reason === undefined) return refused('validation_failed')
  const remembered =
    options.key === undefined || options.isDryRun ? undefined : memory.get(memoryKey(operation, options.key))
  if (!intent.exists()) {
    // The resource no longer exists, but a repeated DELETE still returns the first response.
    const isDeletion =
      kindOf(operation) === 'delete' && remembered?.request === requestText(intent, options.reason)
    return isDeletion && remembered ? { kind: 'repeated', remembered } : refused('not_found')
  }
  if (remembered) return repetition(remembered, requestText(intent, options.reason))
  if (intent.target && options.ifMatch && !options.ifMatch.holds) return refused('stale_resource')
  const always = needsReasonAlways(operation)
  if (reason === null && always && !options.isDryRun) return refused('reason_required')
  const outcome = intent.outcome()
  if (typeof outcome === 'string') return refused(outcome)
  const { limit = null, needsReason = false } = outcome
  if (options.isDryRun)
    return { kind: 'preview', outcome, needsReason: always || needsReason || limit !== null }
  // Any operation other than a create that exceeds a limit is an override, and every override requires a reason.
  if (reason === null && limit && kindOf(operation) === 'create') return refused('limit_exceeded')
  if (reason === null && (needsReason || limit)) return refused('reason_required')
  return { kind: 'done', outcome, reason }
}

function repetition(remembered: Remembered, request: string): Prediction {
  if (remembered.request !== request) return refused('idempotency_key_reused')
  return revealsSecret(remembered.intent.operation)
    ? { kind: 'refused', error: 'secret_already_revealed', location: remembered.location }
    : { kind: 'repeated', remembered }
}

/** The normalized name, or undefined if it is invalid. An absent name stays absent. */
export const namedIn = (body: View): { name?: string } | undefined => {
  const given = body['name']
  if (given === undefined) return {}
  const name = nameOf(String(given))
  return name === undefined ? undefined : { name }
}
