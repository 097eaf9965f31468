import { createHash, timingSafeEqual } from 'node:crypto'
import { ingestKumoRecords } from '../../core/mail/feedback/ingest-kumo-records.ts'
import type { FeedbackDeps } from '../../core/mail/feedback/ingest-report.ts'
import { PosternError } from '../../platform/errors.ts'
import { createRateLimit, networkOf } from '../../platform/http/rate-limit.ts'
import type { HttpServer } from '../../platform/http/server.ts'
import { requireIdentityEncoding } from '../../platform/http/strict-json.ts'

/**
 * The endpoint to which KumoMTA posts its log records, in batches. A batch is a JSON array, as in KumoMTA's
 * documentation of batched log hooks; a single record and newline-delimited JSON (the format of KumoMTA's log files)
 * are accepted as well. The client is authenticated by a token, before its request body is read.
 *
 * 200 is sent only after all records are committed. Until then, KumoMTA keeps them in its queue and retries.
 */
export interface KumomtaDeps extends FeedbackDeps {
  /** Not empty. All of them are valid, so that a token can be rotated. */
  tokens: readonly string[]
}

const maxBytes = 1024 * 1024
const maxRecords = 1000
// Far above the rate that a misconfiguration would cause.
const refusalsPerMinute = 60

const json = 'application/json'
const jsonLines = 'application/x-ndjson'

export function kumomtaRoute(app: HttpServer, deps: KumomtaDeps): void {
  const refused = createRateLimit(refusalsPerMinute, 'this address')
  const isAuthentic = tokenCheck(deps.tokens)
  void app.register((own, _options, done) => {
    own.addHook('onRequest', async ({ headers, ip }) => {
      if (isAuthentic(headers.authorization)) return
      const network = networkOf(ip)
      await refused(network)
      deps.log.warn({ network }, 'KumoMTA log records rejected: no valid token')
      throw new PosternError(
        'unauthenticated',
        'A token from POSTERN_KUMOMTA_TOKENS is required: Authorization: Bearer <token>.',
      )
    })
    // The API's strict parser is not used, because it would reject a whole batch for one unusual record.
    own.removeAllContentTypeParsers()
    own.addContentTypeParser(
      [json, jsonLines],
      { parseAs: 'buffer', bodyLimit: maxBytes },
      (_request, body, parsed) => parsed(null, body),
    )
    // Not in the OpenAPI document: only KumoMTA calls it.
    own.post(
      '/v1/intake/kumomta',
      { bodyLimit: maxBytes, schema: { hide: true } },
      async ({ body, headers }) => {
        requireIdentityEncoding(headers['content-encoding'])
        const text = (body as Buffer | undefined)?.toString() ?? ''
        const isLines = headers['content-type']?.toLowerCase().startsWith(jsonLines) ?? false
        await ingestKumoRecords(deps, recordsIn(text, isLines))
        return { status: 'ok' }
      },
    )
    done()
  })
}

function tokenCheck(tokens: readonly string[]): (authorization: string | undefined) => boolean {
  const expected = tokens.map(sha256)
  return (authorization) => {
    const [, token = ''] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? []
    const given = sha256(token)
    // All tokens are compared, so that the timing reveals nothing. The digests have the same length.
    const matches = expected.map((digest) => timingSafeEqual(digest, given))
    return matches.includes(true)
  }
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

function recordsIn(text: string, isLines: boolean): unknown[] {
  const texts = isLines ? text.split('\n').filter((line) => line.trim() !== '') : [text]
  requireFew(texts)
  const values = texts.map(parsed)
  if (values.every((value) => value === undefined)) {
    throw new PosternError('invalid_json', 'The body is not valid JSON.')
  }
  const [whole] = values
  if (isLines || !Array.isArray(whole)) return values
  requireFew(whole)
  return whole
}

function requireFew(records: readonly unknown[]): void {
  if (records.length <= maxRecords) return
  throw new PosternError('body_too_large', `The body contains more than ${maxRecords} log records.`)
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
