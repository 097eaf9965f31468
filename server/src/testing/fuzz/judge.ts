import {
  answersOutsideOperations,
  type DocumentedAnswer,
  type DocumentedOperation,
  transportAnswers,
} from './document.ts'
import type { Answer, Request } from './http.ts'

/** What an answer is held against whatever was asked: the document, and what the document says of all answers. */
export const complaintKinds = [
  '5xx',
  'undocumented status',
  'body off schema',
  'model mismatch',
  'manners',
  'no answer',
] as const
export type ComplaintKind = (typeof complaintKinds)[number]

export interface Complaint {
  kind: ComplaintKind
  text: string
}

/** An answer of this operation, or of an address where there is none. */
export function judge(
  operation: DocumentedOperation | undefined,
  request: Request,
  answer: Answer,
): Complaint[] {
  const { status, headers } = answer
  if (status >= 500) return [{ kind: '5xx', text: `${status} ${answer.text}` }]
  const documented =
    operation === undefined
      ? answersOutsideOperations.get(status)
      : status === 200 && isDryRun(request)
        ? operation.preview
        : (operation.answers.get(status) ?? transportAnswers.get(status))
  if (!documented) return [{ kind: 'undocumented status', text: `${status} ${answer.text.slice(0, 500)}` }]
  const isHead = request.method === 'HEAD'
  const body = isHead ? undefined : parsed(answer)
  const complaints = isHead ? [] : bodyFaults(documented, answer, body)
  const manners = [
    ...contentTypeFaults(documented, headers, isHead),
    ...headerFaults(documented, status, headers, body),
    ...(status >= 400 ? leaks(request, answer.text) : []),
  ]
  return [...complaints, ...manners.map((text): Complaint => ({ kind: 'manners', text }))]
}

/** Only its one spelling is a dry run; any other is refused. */
const isDryRun = ({ path }: Request): boolean =>
  new URLSearchParams(path.split('?')[1]).get('dry_run') === 'true'

export const parsed = ({ text }: Answer): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function bodyFaults(
  { contentType, codes, faultsOf }: DocumentedAnswer,
  answer: Answer,
  body: unknown,
): Complaint[] {
  const off = (text: string): Complaint => ({ kind: 'body off schema', text })
  if (contentType === null) return answer.text === '' ? [] : [off('the body should be empty')]
  if (contentType === 'application/x-ndjson') return lineFaults(answer.text).map(off)
  if (body === undefined) return [off('the body is not JSON')]
  const faults = faultsOf(body).map(off)
  if (answer.status < 400 || faults.length > 0) return faults
  const { error } = body as { error: string }
  return codes.has(error)
    ? []
    : [off(`"${error}" is not a code that is documented here for ${answer.status}`)]
}

/** Newline-delimited JSON, the last line of which says that it is the last. */
function lineFaults(text: string): string[] {
  const lines = text.split('\n')
  if (lines.pop() !== '') return ['the last line is not ended']
  try {
    const types = lines.map((line) => (JSON.parse(line) as { type?: string }).type)
    return types.at(-1) === 'end' && types.indexOf('end') === types.length - 1
      ? []
      : ['it has no end, or two']
  } catch {
    return ['a line is not JSON']
  }
}

function contentTypeFaults(
  { contentType }: DocumentedAnswer,
  headers: Answer['headers'],
  isHead: boolean,
): string[] {
  const given = headers.get('content-type')
  if (contentType === null) return given === undefined ? [] : [`an empty answer has Content-Type ${given}`]
  const accepted = contentType === 'application/json' ? [`${contentType}; charset=utf-8`] : [contentType]
  // Of HEAD it is enough that it does not lie.
  if (isHead && given === undefined) return []
  return given !== undefined && accepted.includes(given) ? [] : [`Content-Type is ${given}`]
}

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const forms: Record<string, RegExp> = {
  etag: /^"[1-9]\d*"$/,
  location: /^\/v1\/[a-z0-9/-]+$/,
  'idempotent-replayed': /^true$/,
  'retry-after': /^[1-9]\d*$/,
}

function headerFaults(
  documented: DocumentedAnswer,
  status: number,
  headers: Answer['headers'],
  body: unknown,
): string[] {
  const faults: string[] = []
  if (!uuidV7.test(headers.get('x-request-id') ?? '')) faults.push('X-Request-Id is not there')
  const error = (body as { error?: string } | undefined)?.error
  // A preview is of something that is not so.
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
    if (value !== undefined && !wanted.has(name) && !allowed.has(name))
      faults.push(`${name} should not be there`)
    if (value !== undefined && !form.test(value)) faults.push(`${name} is ${value}`)
  }
  const challenge = headers.get('www-authenticate')
  if (status === 401 ? challenge !== 'Bearer' : challenge !== undefined) {
    faults.push(`WWW-Authenticate is ${challenge}`)
  }
  return faults
}

/** What would tell a caller how the service is made. */
const internals = [
  /\b(?:select|insert into|update|delete from)\s+[\w.*"]+\s+(?:from|set|values|where)\b/i,
  /SQLSTATE|\brelation "|\bcolumn "|\bconstraint "|violates|duplicate key|deadlock|\bpostern_\w+|\bcontrol\.\w+|\bmail\.\w+_/,
  /\bkysely\b|\bfastify\b|\bajv\b|node:|node_modules|\/src\/|\.[jt]s:\d+|\bat \w+ \(|\bundefined\b|\[object /i,
  /\bE(?:CONN|PIPE|HOST|NET|TIMED|AI_|NO|ACCES)[A-Z]*\b|\bFST_ERR|\bHPE_/,
]

function leaks(request: Request, text: string): string[] {
  const found = internals.map((pattern) => pattern.exec(text)?.[0]).find((one) => one !== undefined)
  if (found === undefined) return []
  // What the caller said may be said back.
  const sent = `${request.path} ${String(request.body ?? '')} ${request.raw?.toString() ?? ''}`
  return sent.includes(found) || sent.includes(JSON.stringify(found).slice(1, -1))
    ? []
    : [`the message tells of "${found}"`]
}
