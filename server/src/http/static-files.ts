import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Compressed, compressed, sendCompressed } from '../platform/http/compressed.ts'

// Files of the web interfaces and of the documentation, which are built before the server starts.

export interface StaticFile extends Compressed {
  type: string
  isText: boolean
  /** Its name contains a hash of its content, so it never changes. */
  isImmutable: boolean
  etag: string
}

const types: Record<string, { type: string; isText: boolean }> = {
  '.html': { type: 'text/html; charset=utf-8', isText: true },
  '.js': { type: 'text/javascript; charset=utf-8', isText: true },
  '.css': { type: 'text/css; charset=utf-8', isText: true },
  '.json': { type: 'application/json; charset=utf-8', isText: true },
  '.md': { type: 'text/markdown; charset=utf-8', isText: true },
  '.txt': { type: 'text/plain; charset=utf-8', isText: true },
  '.svg': { type: 'image/svg+xml', isText: true },
  '.png': { type: 'image/png', isText: false },
  '.woff2': { type: 'font/woff2', isText: false },
}

/** Names of files below this folder contain a hash of their content. */
export const hashedFolder = 'assets/'

export function staticFile(name: string, content: Buffer): StaticFile {
  const known = types[path.extname(name)] ?? { type: 'application/octet-stream', isText: false }
  return {
    ...compressed(content),
    ...known,
    isImmutable: name.startsWith(hashedFolder),
    // Weak, because the compressed variants have the same one (RFC 9110 §8.8.1).
    etag: `W/"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`,
  }
}

/** The paths of all files below a folder. Empty if the folder does not exist. */
export function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Sends the file, or 304 if the client has it. `cacheControl` is for files that can change. */
export function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: StaticFile,
  cacheControl: string,
): FastifyReply | Promise<FastifyReply> {
  reply.header('cache-control', file.isImmutable ? 'public, max-age=31536000, immutable' : cacheControl)
  reply.header('etag', file.etag)
  if (matches(request.headers['if-none-match'] ?? '', file.etag)) return reply.code(304).send()
  reply.type(file.type)
  return file.isText ? sendCompressed(request, reply, file) : reply.send(file.plain)
}

// RFC 9110 §13.1.2: a weak comparison.
const matches = (header: string, etag: string): boolean =>
  header
    .split(',')
    .map((one) => one.trim())
    .some((one) => one === '*' || one === etag || `W/${one}` === etag)

// Added to the headers that every response has. Disables browser features that the pages do not use; they do use
// the clipboard.
const closed = ['camera', 'display-capture', 'geolocation', 'microphone', 'midi', 'payment', 'serial', 'usb']
export const pageHeaders = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': closed.map((feature) => `${feature}=()`).join(', '),
}
