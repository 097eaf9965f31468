import type { Answer } from '../http.ts'
import { parsed } from '../judge.ts'
import { apiKeyFields } from './api-keys.ts'
import { orderedFields } from './deliveries.ts'
import { endpointFields } from './endpoints.ts'
import {
  type Intent,
  kindOf,
  type Manner,
  type Memory,
  memoryKey,
  type Outcome,
  requestText,
  statusOf,
  type Verdict,
} from './intent.ts'
import { planFields } from './plans.ts'
import { billingFields, projectFields } from './projects.ts'
import { routeFields } from './routing.ts'
import { isSame } from './targets.ts'
import { differences } from './unknown.ts'
import type { View } from './world.ts'

/** An answer against what the model said of it. Where they agree, the model moves on; otherwise it tells why not. */
export function settle(
  intent: Intent,
  manner: Manner,
  verdict: Verdict,
  answer: Answer,
  memory: Memory,
): string[] {
  switch (verdict.kind) {
    case 'refused':
      return refusalFaults(verdict, answer)
    case 'repeated': {
      const { status, text, etag, location } = verdict.remembered
      return told(answer, { status, text, etag, location, replayed: 'true' })
    }
    case 'preview':
      return previewFaults(intent.operation, verdict, answer)
    case 'done':
      return carryOut(intent, manner, verdict, answer, memory)
  }
}

function refusalFaults({ error, location }: Extract<Verdict, { kind: 'refused' }>, answer: Answer): string[] {
  const body = parsed(answer) as { error?: string } | undefined
  const found = `${answer.status} ${body?.error}`
  const wanted = `${statusOf[error]} ${error}`
  if (found !== wanted) return [`the answer is ${found} and not ${wanted}: ${answer.text.slice(0, 500)}`]
  return answer.headers.get('location') === location ? [] : [`Location is not ${location}`]
}

interface Told {
  status: number
  text: string
  etag: string | undefined
  location: string | undefined
  replayed: string | undefined
}

const told = (answer: Answer, expected: Told): string[] =>
  differences(expected, {
    status: answer.status,
    text: answer.text,
    etag: answer.headers.get('etag'),
    location: answer.headers.get('location'),
    replayed: answer.headers.get('idempotent-replayed'),
  })

const successOf = { create: 201, edit: 200, rotate: 200, command: 200, enqueue: 202, delete: 204 } as const

function carryOut(
  intent: Intent,
  manner: Manner,
  { outcome, reason }: Extract<Verdict, { kind: 'done' }>,
  answer: Answer,
  memory: Memory,
): string[] {
  const status = successOf[kindOf(intent.operation)]
  if (answer.status !== status) {
    return [`the answer is ${answer.status} and not ${status}: ${answer.text.slice(0, 500)}`]
  }
  const body = parsed(answer)
  const faults = outcome.answer === null ? [] : differences(outcome.answer, body)
  if (faults.length > 0) return faults
  const { acts, id, location } = outcome.commit(body as never)
  const requestId = answer.headers.get('x-request-id') ?? ''
  if (outcome.change) {
    const { type, before, after } = outcome.change
    const limit = outcome.limit ?? null
    acts.push({ operation: intent.operation, type, id, reason, limit, before, after, requestId })
  }
  const etag = outcome.version === null ? undefined : `"${outcome.version}"`
  if (manner.key !== undefined) {
    memory.set(memoryKey(intent.operation, manner.key), {
      intent,
      reason: manner.reason,
      request: requestText(intent, manner.reason),
      status,
      text: answer.text,
      etag,
      location,
    })
  }
  return told(answer, { status, text: answer.text, etag, location, replayed: undefined })
}

/** What can be set, by the kind of resource; what a preview and the audit tell besides is not for the model to say. */
export const settable: Record<string, readonly string[]> = {
  plan: planFields,
  project: [...projectFields, ...billingFields],
  member: ['user_id', 'role'],
  endpoint: [...endpointFields, ...orderedFields],
  user: ['role', 'is_active'],
  domain: ['name', 'mta_provider'],
  route: routeFields,
  api_key: apiKeyFields,
  queue: ['is_held'],
  message: ['is_cancel_requested'],
}

function previewFaults(
  operation: string,
  { outcome, needsReason }: Extract<Verdict, { kind: 'preview' }>,
  answer: Answer,
): string[] {
  if (answer.status !== 200) {
    return [`the preview is ${answer.status} and not 200: ${answer.text.slice(0, 500)}`]
  }
  const preview = parsed(answer) as Preview
  const main = outcome.change?.type
  const fields = settable[main ?? ''] ?? []
  const changes = preview.changes.filter(({ resource, field }) => resource === main && fields.includes(field))
  return differences(
    { operation, reason_required: needsReason, changes: expectedChanges(outcome, fields) },
    {
      operation: preview.operation,
      reason_required: preview.reason_required,
      changes: changes
        .map(({ id, field, before, after }) => ({ isNew: id === null, field, before, after }))
        .sort(byField),
    },
  )
}

interface Preview {
  operation: string
  reason_required: boolean
  changes: { resource: string; id: number | null; field: string; before: unknown; after: unknown }[]
}

const byField = (one: { field: string }, other: { field: string }): number =>
  one.field < other.field ? -1 : 1

function expectedChanges({ change }: Outcome, fields: readonly string[]): object[] {
  if (!change) return []
  const { before, after } = change
  const valueIn = (view: View | null, field: string): unknown => view?.[field] ?? null
  return fields
    .filter((field) => !isSame(valueIn(before, field), valueIn(after, field)))
    .map((field) => ({
      isNew: before === null,
      field,
      before: valueIn(before, field),
      after: valueIn(after, field),
    }))
    .sort(byField)
}
