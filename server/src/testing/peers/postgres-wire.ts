/** The parts of PostgreSQL's protocol (version 3) that a proxy needs. */

/** Splits a stream into complete messages and forwards those that the reader accepts. */
export function splitter(
  read: (type: string, body: Buffer) => boolean,
  { hasStartup }: { hasStartup: boolean },
): (chunk: Buffer) => Buffer {
  let rest = Buffer.alloc(0)
  let isStartup = hasStartup
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    let end = 0
    for (;;) {
      // The first message of a client has no type byte.
      const head = isStartup ? 0 : 1
      if (rest.length < end + head + 4) break
      const length = head + rest.readInt32BE(end + head)
      if (rest.length < end + length) break
      const type = isStartup ? '' : rest.toString('latin1', end, end + 1)
      isStartup = false
      if (!read(type, rest.subarray(end + head + 4, end + length))) break
      end += length
    }
    const whole = rest.subarray(0, end)
    rest = rest.subarray(end)
    return whole
  }
}

const stringsOf = (body: Buffer): string[] => body.toString('utf8').split('\0')

/** The parameters of a Bind message. */
function valuesOf(body: Buffer): string[] {
  let at = body.indexOf(0) + 1
  at = body.indexOf(0, at) + 1
  at += 2 + 2 * body.readInt16BE(at)
  const values: string[] = []
  let left = body.readInt16BE(at)
  at += 2
  for (; left > 0; left--) {
    const length = body.readInt32BE(at)
    at += 4
    values.push(length < 0 ? '' : body.toString('utf8', at, at + length))
    at += Math.max(0, length)
  }
  return values
}

/** True if the transaction stays open: pg-boss sends some complete transactions as a single query text. */
const opensTransaction = (text: string): boolean =>
  /^\s*(begin|start transaction)\b/i.test(text) && !/\bcommit;?\s*$/i.test(text)

export function writesOf(text: string): string[] {
  const plain = text.replaceAll('"', '').replace(/\bfor (no key )?update\b/gi, '')
  const verbs = plain.matchAll(/\b(insert into|update|delete from)\s+(?:only\s+)?([a-z_]+\.[a-z_0-9]+)/gi)
  return [...verbs].map(([, verb = '', table = '']) => `${verb.split(' ')[0]?.toLowerCase()} ${table}`)
}

/** A statement that a client sends to the server. */
export interface SentStatement {
  text: string
  values: string[]
  opensTransaction: boolean
  /** A transaction is open when the server executes the statement. */
  isInTransaction: boolean
}

/** Follows a client's statements. They can be prepared, and can be sent before earlier ones are answered. */
export class StatementReader {
  readonly #prepared = new Map<string, string>()
  #text = ''
  #values: string[] = []
  #isOpen = false

  /** Undefined if the message does not execute a statement. */
  read(type: string, body: Buffer): SentStatement | undefined {
    if (type === 'P') {
      const [name = '', text = ''] = stringsOf(body)
      this.#prepared.set(name, text)
    }
    if (type === 'B') {
      this.#text = this.#prepared.get(stringsOf(body)[1] ?? '') ?? ''
      this.#values = valuesOf(body)
    }
    if (type === 'Q') [this.#text, this.#values] = [stringsOf(body)[0] ?? '', []]
    return type === 'Q' || type === 'E' ? this.#sent() : undefined
  }

  #sent(): SentStatement {
    const text = this.#text
    const opens = opensTransaction(text)
    const isInTransaction = this.#isOpen
    if (opens) this.#isOpen = true
    else if (/^\s*(commit|rollback)\b(?! to)/i.test(text)) this.#isOpen = false
    return { text, values: this.#values, opensTransaction: opens, isInTransaction }
  }
}

/** The command tag of a CommandComplete message, such as `UPDATE 1`. */
export const tagOf = (body: Buffer): string => stringsOf(body)[0] ?? ''
