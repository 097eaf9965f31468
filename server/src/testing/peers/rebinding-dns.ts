import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { cleanUp } from '../harness/cleanup.ts'

/**
 * A DNS server whose answers have a TTL of 0 and can change with every query. Knot does not support this. DNS rebinding
 * uses such answers to pass an address check with one address and then have the client connect to another.
 */
export interface RebindingDns {
  /** For POSTERN_DNS_SERVERS. */
  server: string
  /** The number of queries per address type, by name. */
  asked: Map<string, { A: number; AAAA: number }>
}

/**
 * `answer` receives the number of earlier queries for this name and address type. Undefined means that there is no
 * address.
 */
export async function startRebindingDns(
  answer: (name: string, type: 'A' | 'AAAA', askedBefore: number) => string[],
): Promise<RebindingDns> {
  const asked: RebindingDns['asked'] = new Map()
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const question = readQuestion(query)
    if (!question) return
    const { name, type } = question
    const counts = asked.get(name) ?? { A: 0, AAAA: 0 }
    asked.set(name, counts)
    socket.send(response(query, question.end, answer(name, type, counts[type]++)), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  cleanUp(async () => void socket.close())
  return { server: `127.0.0.1:${socket.address().port}`, asked }
}

const types = { A: 1, AAAA: 28 } as const

/** RFC 1035 §4.1.2. Resolvers send exactly one question. */
function readQuestion(query: Buffer): { name: string; type: 'A' | 'AAAA'; end: number } | undefined {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = query.readUInt16BE(at + 1)
  if (type !== types.A && type !== types.AAAA) return undefined
  return { name: labels.join('.').toLowerCase(), type: type === types.A ? 'A' : 'AAAA', end: at + 5 }
}

function response(query: Buffer, questionEnd: number, addresses: readonly string[]): Buffer {
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  // An authoritative answer (RFC 1035 §4.1.1) with one question.
  head.writeUInt16BE(0x8580, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(addresses.length, 6)
  return Buffer.concat([head, query.subarray(12, questionEnd), ...addresses.map(record)])
}

function record(address: string): Buffer {
  const data = address.includes(':') ? ipv6Octets(address) : Buffer.from(address.split('.').map(Number))
  const head = Buffer.alloc(12)
  // A pointer to the question's name, the type, IN, a TTL of 0 and the length of the data.
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(data.length === 4 ? types.A : types.AAAA, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

/** Only for addresses without an embedded IPv4 address. */
function ipv6Octets(address: string): Buffer {
  const [front = '', back] = address.split('::')
  const groups = (part: string) => part.split(':').filter((group) => group !== '')
  const [before, after] = [groups(front), groups(back ?? '')]
  const all = [...before, ...Array(8 - before.length - after.length).fill('0'), ...after]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
