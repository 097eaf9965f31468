import type { Reader, Watcher } from './tapped-proxy.ts'

/**
 * TLS (RFC 8446 §5.1). Only the record boundaries are visible. In an SMTP session each command and each reply is a
 * separate record.
 */
const nothing = Buffer.alloc(0)
const headerLength = 5
const what = 'record of TLS'

export function readTls(watch: Watcher): Reader {
  let isOver = false
  const passer = (when: 'before' | 'after'): ((chunk: Buffer) => Buffer) => {
    let rest: Buffer = nothing
    return (chunk) => {
      rest = Buffer.concat([rest, chunk])
      const passed: Buffer[] = []
      for (let length = recordLength(rest); length > 0 && !isOver; length = recordLength(rest)) {
        isOver ||= watch({ what, when })
        if (!isOver) passed.push(rest.subarray(0, length))
        rest = rest.subarray(length)
      }
      return Buffer.concat(passed)
    }
  }
  return { there: passer('before'), back: passer('after') }
}

/** The length of the first complete record; 0 if there is none. */
function recordLength(bytes: Buffer): number {
  if (bytes.length < headerLength) return 0
  const length = headerLength + bytes.readUInt16BE(3)
  return bytes.length < length ? 0 : length
}
