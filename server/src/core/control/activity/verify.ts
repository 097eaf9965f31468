/**
 * Verifies the activity chains from the oldest retained row. No checkpoint signs these chains, so an attacker with write
 * access to the database can also write a consistent chain.
 */
import type { Db } from '../../../platform/db/db.ts'
import { addressDigests } from '../audit/addresses.ts'
import { hashOf } from '../audit/chain.ts'
import { type ActivityRow, type HeadRow, type Kind, listFrom, listHeads } from './activity.sql.ts'

export interface ActivityVerification {
  ok: boolean
  rows: number
  chains: number
  erased: number
  first_bad: { kind: Kind; owner: number; seq: number; problem: string } | null
}

type Bad = NonNullable<ActivityVerification['first_bad']>

const headsAtOnce = 1000
const rowsAtOnce = 1000

export async function verifyActivity(db: Db): Promise<ActivityVerification> {
  const found: ActivityVerification = { ok: true, rows: 0, chains: 0, erased: 0, first_bad: null }
  for (const kind of ['project', 'user'] as const) {
    for await (const head of headsOf(db, kind)) {
      // A concurrent purge or append can look like a fault. Only a real fault is found again in the second pass.
      const bad = (await verifyChain(db, kind, head, found)) && (await verifyAgain(db, kind, head.owner))
      if (bad) return { ...found, ok: false, first_bad: bad }
      found.chains++
    }
  }
  return found
}

async function* headsOf(db: Db, kind: Kind): AsyncGenerator<HeadRow> {
  for (let afterOwner = -1; ; ) {
    const page = await db.read((tx) => listHeads(tx, kind, { limit: headsAtOnce, afterOwner }))
    yield* page
    const last = page.at(-1)
    if (!last || page.length < headsAtOnce) return
    afterOwner = last.owner
  }
}

async function verifyAgain(db: Db, kind: Kind, owner: number): Promise<Bad | null> {
  const [head] = await db.read((tx) => listHeads(tx, kind, { limit: 1, afterOwner: owner - 1, owner }))
  const uncounted = { rows: 0, erased: 0 }
  return head
    ? verifyChain(db, kind, head, uncounted)
    : { kind, owner, seq: 0, problem: 'The head of the chain is missing.' }
}

async function verifyChain(
  db: Db,
  kind: Kind,
  head: HeadRow,
  counted: { rows: number; erased: number },
): Promise<Bad | null> {
  const { owner } = head
  let [seq, hash] = [head.purged_seq, head.purged_hash]
  const bad = (at: number, problem: string): Bad => ({
    kind,
    owner,
    seq: at,
    problem: `Row ${at} of the activity of ${kind} ${owner} ${problem}`,
  })
  while (seq < head.seq) {
    const afterSeq = seq
    const page = await db.read((tx) => listFrom(tx, kind, owner, { limit: rowsAtOnce, afterSeq }))
    if (page.length === 0) return bad(seq + 1, 'is missing: the chain was cut off here.')
    for (const row of page) {
      if (row.seq > head.seq) break
      if (row.seq !== seq + 1) return bad(seq + 1, `is missing: the next one is row ${row.seq}.`)
      if (row.prev_hash !== hash) return bad(row.seq, 'does not follow the row before it.')
      const problem = faultOf(kind, row, counted)
      if (problem) return bad(row.seq, problem)
      counted.rows++
      seq = row.seq
      hash = row.hash
    }
  }
  return hash === head.hash ? null : bad(seq, "is not the chain's end: its hash is not that of the head.")
}

function faultOf(kind: Kind, row: ActivityRow, counted: { erased: number }): string | null {
  const { owner, people, prev_hash, hash, ...rest } = row
  const position = { [`${kind}_id`]: owner, seq: row.seq }
  if (hashOf(prev_hash, { ...position, ...rest }) !== hash) {
    return 'was altered: its hash does not match its content.'
  }
  const digests = new Map([
    ['actor', row.actor_digest],
    ...addressDigests(row.before, 'before'),
    ...addressDigests(row.after, 'after'),
  ])
  for (const { salt, ...person } of people) {
    if (digests.get(person.part) !== hashOf(salt, { ...position, ...person })) {
      return `is intact, but its personal data "${person.part}" was altered.`
    }
    digests.delete(person.part)
  }
  counted.erased += digests.size
  return null
}
