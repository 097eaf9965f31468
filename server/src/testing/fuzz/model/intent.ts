import { nameOf, reasonOf } from './rules.ts'
import type { AuditedAct, LimitException, Thing, View } from './world.ts'

/** What a mutation is about to do, before it is known how it is asked for. */
export interface Intent {
  operation: string
  params: Record<string, number | string>
  /** Without the reason. */
  body: View
  /** What is looked for and not found is 404. */
  exists: () => boolean
  /** What `If-Match` is compared with; null for a create. */
  target: Thing | null
  /** The rules: what would happen, or the code of the refusal. Changes nothing. */
  outcome: () => Outcome | string
}

export interface Outcome {
  /** Null: nothing changes. */
  change: { type: string; before: View | null; after: View | null } | null
  /** Whether one of the changes is never made without a reason. */
  needsReason?: boolean
  limit?: LimitException | null
  /** With `Unknown` where only the service can say; null for an empty body. */
  answer: unknown
  version: number | null
  /** Makes it so in the model, with what the answer told; returns where the act is audited and of what. */
  commit: (body: never) => { acts: AuditedAct[]; id: number | string; location?: string }
}

export type Kind = 'create' | 'edit' | 'rotate' | 'delete' | 'command' | 'enqueue'

const last = (operation: string): string => operation.split('.').at(-1) ?? ''

export const kindOf = (operation: string): Kind => {
  const verb = last(operation)
  if (['verify', 'hold', 'release', 'cancel'].includes(verb)) return 'command'
  if (['test', 'replay'].includes(verb)) return 'enqueue'
  return verb === 'create' || verb === 'rotate' || verb === 'delete' ? verb : 'edit'
}

export const needsReasonAlways = (operation: string): boolean =>
  ['rotate', 'delete'].includes(kindOf(operation)) ||
  ['users.edit', 'queue.hold', 'queue.release', 'messages.cancel'].includes(operation)

export const revealsSecret = (operation: string): boolean =>
  /^(?:endpoints|api-keys)\.(?:create|rotate)$/.test(operation)

/** How it is asked for. */
export interface Manner {
  /** As sent. */
  reason: string | undefined
  ifMatch: { text: string; holds: boolean } | undefined
  key: string | undefined
  isDryRun: boolean
}

/** An answer that a repetition gets again. */
export interface Remembered {
  intent: Intent
  reason: string | undefined
  request: string
  status: number
  text: string
  etag: string | undefined
  location: string | undefined
}

/** The first answers, by operation and key. */
export type Memory = Map<string, Remembered>

export const memoryKey = (operation: string, key: string): string => `${operation} ${key}`

/** The same request is the same operation on the same thing with the same members, in whatever order. */
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

export type Verdict =
  | { kind: 'refused'; error: string; location?: string | undefined }
  | { kind: 'repeated'; remembered: Remembered }
  | { kind: 'preview'; outcome: Outcome; needsReason: boolean }
  | { kind: 'done'; outcome: Outcome; reason: string | null }

const refused = (error: string): Verdict => ({ kind: 'refused', error })

/** In the order of answers: the form of the reason, 404, repetition, 412, the rules. */
export function verdictOn(intent: Intent, manner: Manner, memory: Memory): Verdict {
  const { operation } = intent
  const reason = manner.reason === undefined ? null : reasonOf(manner.reason)
  if (reason === undefined) return refused('validation_failed')
  const remembered =
    manner.key === undefined || manner.isDryRun ? undefined : memory.get(memoryKey(operation, manner.key))
  if (!intent.exists()) {
    // What a DELETE has deleted is gone, and the same DELETE again has the first answer.
    const isDeletion =
      kindOf(operation) === 'delete' && remembered?.request === requestText(intent, manner.reason)
    return isDeletion && remembered ? { kind: 'repeated', remembered } : refused('not_found')
  }
  if (remembered) return repetition(remembered, requestText(intent, manner.reason))
  if (intent.target && manner.ifMatch && !manner.ifMatch.holds) return refused('stale_resource')
  const always = needsReasonAlways(operation)
  if (reason === null && always && !manner.isDryRun) return refused('reason_required')
  const outcome = intent.outcome()
  if (typeof outcome === 'string') return refused(outcome)
  const { limit = null, needsReason = false } = outcome
  if (manner.isDryRun)
    return { kind: 'preview', outcome, needsReason: always || needsReason || limit !== null }
  // What goes past a limit and is no create is an override, which needs a reason as all of them do.
  if (reason === null && limit && kindOf(operation) === 'create') return refused('limit_exceeded')
  if (reason === null && (needsReason || limit)) return refused('reason_required')
  return { kind: 'done', outcome, reason }
}

function repetition(remembered: Remembered, request: string): Verdict {
  if (remembered.request !== request) return refused('idempotency_key_reused')
  return revealsSecret(remembered.intent.operation)
    ? { kind: 'refused', error: 'secret_already_revealed', location: remembered.location }
    : { kind: 'repeated', remembered }
}

/** A name as it is kept, or a refusal; absent stays absent. */
export const namedIn = (body: View): { name?: string } | undefined => {
  const given = body['name']
  if (given === undefined) return {}
  const name = nameOf(String(given))
  return name === undefined ? undefined : { name }
}
