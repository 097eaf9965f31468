import {
  type DocumentedOperation,
  type DocumentedResponse,
  responsesOutsideOperations,
  transportResponses,
} from './document.ts'
import type { HttpResponse, Request } from './http.ts'

/**
 * Checks every response against the OpenAPI document and against the rules that the document states for all responses.
 */
export const violationKinds = [
  '5xx',
  'undocumented status',
  'schema mismatch',
  'model mismatch',
  'HTTP behaviour',
  'no response',
] as const
export type ViolationKind = (typeof violationKinds)[number]

export interface Violation {
  kind: ViolationKind
  text: string
}

/** `operation` is undefined for a path that does not belong to any operation. */
export function checkResponse(
  operation: DocumentedOperation | undefined,
  request: Request,
  response: HttpResponse,
): Violation[] {
  const { status, headers } = response
  if (status >= 500) return [{ kind: '5xx', text: `${status} ${response.text}` }]
  const documented =
    operation === undefined
      ? responsesOutsideOperations.get(status)
      : status === 200 && isDryRun(request)
        ? operation.preview
        : (operation.responses.get(status) ?? transportResponses.get(status))
  if (!documented) return [{ kind: 'undocumented status', text: `${status} ${response.text.slice(0, 500)}` }]
  const isHead = request.method === 'HEAD'
  const body = isHead ? undefined : parsed(response)
  const violations = isHead ? [] : bodyFaults(documented, response, body)
  const httpFaults = [
    ...contentTypeFaults(documented, headers, isHead),
    ...headerFaults(documented, status, headers, body),
    ...(status >= 400 ? leaks(request, response.text) : []),
  ]
  return [...violations, ...httpFaults.map((text): Violation => ({ kind: 'HTTP behaviour', text }))]
}

/** Only the exact value `true` requests a dry run. Any other value is rejected. */
const isDryRun = ({ path }: Request): boolean =>
  new URLSearchParams(path.split('?')[1]).get('dry_run') === 'true'

export const parsed = ({ text }: HttpResponse): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function bodyFaults(
  { contentType, codes, faultsOf }: DocumentedResponse,
  response: HttpResponse,
  body: unknown,
): Violation[] {
  const violation = (text: string): Violation => ({ kind: 'schema mismatch', text })
  if (contentType === null) return response.text === '' ? [] : [violation('the body should be empty')]
  if (contentType === 'application/x-ndjson') return lineFaults(response.text).map(violation)
  if (body === undefined) return [violation('the body is not JSON')]
  const faults = faultsOf(body).map(violation)
  if (response.status < 400 || faults.length > 0) return faults
  const { error } = body as { error: string }
  return codes.has(error) ? [] : [violation(`"${error}" is not documented for status ${response.status}`)]
}

/** Newline-delimited JSON that ends with exactly one line of type `end`. */
function lineFaults(text: string): string[] {
  const lines = text.split('\n')
  if (lines.pop() !== '') return ['the last line has no line break']
  try {
    const types = lines.map((line) => (JSON.parse(line) as { type?: string }).type)
    return types.at(-1) === 'end' && types.indexOf('end') === types.length - 1
      ? []
      : ['the last line must be the only end line']
  } catch {
    return ['a line is not JSON']
  }
}

function contentTypeFaults(
  { contentType }: DocumentedResponse,
  headers: HttpResponse['headers'],
  isHead: boolean,
): string[] {
  const given = headers.get('content-type')
  if (contentType === null) return given === undefined ? [] : [`an empty response has Content-Type ${given}`]
  const accepted = contentType === 'application/json' ? [`${contentType}; charset=utf-8`] : [contentType]
  // For HEAD, Content-Type may be absent.
  if (isHead && given === undefined) return []
  return given !== undefined && accepted.includes(given) ? [] : [`Content-Type is ${given}`]
}

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const forms: Record<string, RegExp> = {
  etag: /^"[1-9]\d*"$/,
  // The id of a suppression is an address, encoded by encodeURIComponent, which leaves `!'()*` as they are.
  location: /^\/v1\/(?:[\w./~!'()*-]|%[0-9A-F]{2})+$/,
  'idempotent-replayed': /^true$/,
  'retry-after': /^[1-9]\d*$/,
}

function headerFaults(
  documented: DocumentedResponse,
  status: number,
  headers: HttpResponse['headers'],
  body: unknown,
): string[] {
  const faults: string[] = []
  if (!uuidV7.test(headers.get('x-request-id') ?? '')) faults.push('X-Request-Id is missing or not a UUIDv7')
  const error = (body as { error?: string } | undefined)?.error
  // A preview describes a state that does not exist, so it has neither ETag nor Location.
  const isPreview = status === 200 && typeof body === 'object' && body !== null && 'reason_required' in body
  const wanted = new Set<string>()
  if (!isPreview && status < 400) {
    for (const name of ['etag', 'location']) if (documented.headers.has(name)) wanted.add(name)
  }
  if (error === 'secret_already_revealed') wanted.add('location')
  if (status === 429 || error === 'request_in_progress') wanted.add('retry-after')
  const allowed = new Set(
    status < 400 && documented.headers.has('idempotent-replayed') ? ['idempotent-replayed'] : [],
  )
  for (const [name, form] of Object.entries(forms)) {
    const value = headers.get(name)
    if (value === undefined && wanted.has(name)) faults.push(`${name} is missing`)
    if (value !== undefined && !wanted.has(name) && !allowed.has(name)) faults.push(`unexpected ${name}`)
    if (value !== undefined && !form.test(value)) faults.push(`invalid ${name}: ${value}`)
  }
  const challenge = headers.get('www-authenticate')
  if (status === 401 ? challenge !== 'Bearer' : challenge !== undefined) {
    faults.push(`WWW-Authenticate is ${challenge}`)
  }
  return faults
}

/** Patterns that reveal the service's internals. */
const internals = [
  /\b(?:select|insert into|update|delete from)\s+[\w.*"]+\s+(?:from|set|values|where)\b/i,
  /SQLSTATE|\brelation "|\bcolumn "|\bconstraint "|violates|duplicate key|deadlock|\bpostern_\w+|\bcontrol\.\w+|\bmail\.\w+_/,
  /\bkysely\b|\bfastify\b|\bajv\b|node:|node_modules|\/src\/|\.[jt]s:\d+|\bat \w+ \(|\bundefined\b|\[object /i,
  /\bE(?:CONN|PIPE|HOST|NET|TIMED|AI_|NO|ACCES)[A-Z]*\b|\bFST_ERR|\bHPE_/,
]

function leaks(request: Request, text: string): string[] {
  const found = internals.map((pattern) => pattern.exec(text)?.[0]).find((one) => one !== undefined)
  if (found === undefined) return []
  // A message may quote the request.
  const sent = `${request.path} ${String(request.body ?? '')} ${request.raw?.toString() ?? ''}`
  return sent.includes(found) || sent.includes(JSON.stringify(found).slice(1, -1))
    ? []
    : [`the message reveals "${found}"`]
}
