import { parsed } from '../check-response.ts'
import type { HttpResponse } from '../http.ts'
import { apiKeyFields } from './api-keys.ts'
import { enqueuedFields } from './deliveries.ts'
import { endpointFields } from './endpoints.ts'
import {
  type Intent,
  kindOf,
  type Memory,
  memoryKey,
  type Outcome,
  type Prediction,
  type RequestOptions,
  requestText,
  statusOf,
} from './intent.ts'
import { interventionFields } from './interventions.ts'
import { noteFields } from './notes.ts'
import { planFields } from './plans.ts'
import { billingFields, projectFields } from './projects.ts'
import { routeFields } from './routing.ts'
import { isSame } from './targets.ts'
import { differences } from './unknown.ts'
import type { View } from './world.ts'

/** Compares a response with the prediction. Updates the model if the two agree; otherwise returns the differences. */
export function applyResponse(
  intent: Intent,
  options: RequestOptions,
  prediction: Prediction,
  response: HttpResponse,
  memory: Memory,
): string[] {
  switch (prediction.kind) {
    case 'refused':
      return refusalFaults(prediction, response)
    case 'repeated': {
      const { status, text, etag, location } = prediction.remembered
      return compareResponse(response, { status, text, etag, location, replayed: 'true' })
    }
    case 'preview':
      return previewFaults(intent.operation, prediction, response)
    case 'done':
      return carryOut(intent, options, prediction, response, memory)
  }
}

function refusalFaults(
  { error, location }: Extract<Prediction, { kind: 'refused' }>,
  response: HttpResponse,
): string[] {
  const body = parsed(response) as { error?: string } | undefined
  const found = `${response.status} ${body?.error}`
  const wanted = `${statusOf[error]} ${error}`
  if (found !== wanted) return [`expected ${wanted}, got ${found}: ${response.text.slice(0, 500)}`]
  return response.headers.get('location') === location ? [] : [`Location is not ${location}`]
}

interface ExpectedResponse {
  status: number
  text: string
  etag: string | undefined
  location: string | undefined
  replayed: string | undefined
}

const compareResponse = (response: HttpResponse, expected: ExpectedResponse): string[] =>
  differences(expected, {
    status: response.status,
    text: response.text,
    etag: response.headers.get('etag'),
    location: response.headers.get('location'),
    replayed: response.headers.get('idempotent-replayed'),
  })

const successOf = { create: 201, edit: 200, rotate: 200, command: 200, enqueue: 202, delete: 204 } as const

function carryOut(
  intent: Intent,
  options: RequestOptions,
  { outcome, reason }: Extract<Prediction, { kind: 'done' }>,
  response: HttpResponse,
  memory: Memory,
): string[] {
  const status = successOf[kindOf(intent.operation)]
  if (response.status !== status) {
    return [`expected ${status}, got ${response.status}: ${response.text.slice(0, 500)}`]
  }
  const body = parsed(response)
  const faults = outcome.response === null ? [] : differences(outcome.response, body)
  if (faults.length > 0) return faults
  const { acts, id, location } = outcome.commit(body as never)
  const requestId = response.headers.get('x-request-id') ?? ''
  if (outcome.change) {
    const { type, before, after } = outcome.change
    const limit = outcome.limit ?? null
    acts.push({ operation: intent.operation, type, of: id, reason, limit, before, after, requestId })
  }
  const etag = outcome.version === null ? undefined : `"${outcome.version}"`
  if (options.key !== undefined) {
    memory.set(memoryKey(intent.operation, options.key), {
      intent,
      reason: options.reason,
      request: requestText(intent, options.reason),
      status,
      text: response.text,
      etag,
      location,
    })
  }
  return compareResponse(response, { status, text: response.text, etag, location, replayed: undefined })
}

/** The fields that can be set, by resource type. Other fields of a preview or audit row are not modelled. */
export const settable: Record<string, readonly string[]> = {
  plan: planFields,
  project: [...projectFields, ...billingFields],
  member: ['user_id', 'role'],
  endpoint: [...endpointFields, ...enqueuedFields],
  user: ['role', 'rights', 'is_active'],
  domain: ['name', 'mta_provider'],
  route: routeFields,
  api_key: apiKeyFields,
  queue: ['is_held'],
  intervention: interventionFields,
  message: ['is_cancel_requested'],
  note: noteFields,
}

function previewFaults(
  operation: string,
  { outcome, needsReason }: Extract<Prediction, { kind: 'preview' }>,
  response: HttpResponse,
): string[] {
  if (response.status !== 200) {
    return [`expected a preview with 200, got ${response.status}: ${response.text.slice(0, 500)}`]
  }
  const preview = parsed(response) as Preview
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
