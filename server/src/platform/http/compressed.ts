import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * Immutable content with its compressed variants, each created on first request (RFC 9110 §12.5.3).
 */
export interface Compressed {
  plain: Buffer
  inEncoding: Map<Encoding, Promise<Buffer>>
}

type Encoding = 'br' | 'gzip'

export const compressed = (plain: Buffer): Compressed => ({ plain, inEncoding: new Map() })

/** Sends the plain bytes to clients that accept neither encoding. The caller sets the type and cache headers. */
export async function sendCompressed(request: FastifyRequest, reply: FastifyReply, what: Compressed) {
  reply.header('vary', 'accept-encoding')
  const encoding = encodings.find((one) => accepts(request.headers['accept-encoding'] ?? '', one))
  if (!encoding) return reply.send(what.plain)
  let bytes = what.inEncoding.get(encoding)
  if (!bytes) {
    bytes = compress[encoding](what.plain)
    what.inEncoding.set(encoding, bytes)
  }
  return reply.header('content-encoding', encoding).send(await bytes)
}

// In order of preference.
const encodings: Encoding[] = ['br', 'gzip']

// Measured on one core with a script of 4.35 MB: gzip 1.26 MB in 0.16 s, brotli quality 5 1.09 MB in 0.3 s,
// quality 9 1.05 MB in 1.3 s.
const compress: Record<Encoding, (plain: Buffer) => Promise<Buffer>> = {
  br: (plain) =>
    promisify(brotliCompress)(plain, {
      params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_SIZE_HINT]: plain.length },
    }),
  gzip: (plain) => promisify(gzip)(plain),
}

const accepts = (header: string, encoding: Encoding): boolean =>
  header.split(',').some((one) => {
    const [name, ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
    // `;q=0` excludes the encoding.
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
