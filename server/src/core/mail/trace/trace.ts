import type { Static } from 'typebox'
import { type References, referencesIn } from '../../../formats/references.ts'
import { readVerp, type VerpKeys } from '../../../formats/verp.ts'
import { type Cell, type Cells, shardCount } from '../../../platform/db/cells.ts'
import type { Db, ReadTx } from '../../../platform/db/db.ts'
import { readCells } from '../../../platform/db/read-cells.ts'
import { projectNames } from '../../control/projects/projects.ts'
import { disableSeqScan } from '../../shared/bounded-scan.ts'
import {
  type AddressOnDay,
  findByAddress,
  findByQueueId,
  findMessage,
  findRecipients,
  type RecipientKey,
  type TracedRow,
} from './trace.sql.ts'
import type { Trace, TracedMessage } from './wire.ts'

/**
 * Finds the messages that a pasted text refers to, in all projects and cells. Only signed references are believed:
 * everything else in a header or a report can be written by its sender.
 */

export interface TraceDeps {
  db: Db
  cells: Cells
  keys: VerpKeys
}

interface Traced extends Static<typeof Trace> {
  /** What was looked up, without signed references. */
  question: string
}

/** References that are looked up for one text, and messages in the answer. */
const maxReferences = 50
const maxMessages = 50
const cellTimeoutMs = 5_000
const eachQueueId = 5
const eachAddress = 20

/** What is looked up. At most `maxReferences`, the signed ones first. */
interface Wanted {
  signed: RecipientKey[]
  messages: References['messages']
  queueIds: string[]
}

type MatchedBy = Static<typeof TracedMessage>['matched_by']
type Found = TracedRow & { matched_by: MatchedBy }

export async function traceText({ db, cells, keys }: TraceDeps, text: string): Promise<Traced> {
  const references = referencesIn(text)
  const wanted = wantedOf(references, keys)
  const named = await readCells(cells, cellTimeoutMs, (tx, cell) => findNamed(tx, cell, wanted))
  const hasFound = named.answers.some((rows) => rows.length > 0)
  const wantedAddresses = hasFound ? [] : addressesOnDays(references)
  const guessed =
    wantedAddresses.length === 0
      ? { answers: [], unreachable: [] }
      : await readCells(cells, cellTimeoutMs, (tx) => findAddressed(tx, wantedAddresses))
  const found = chosen([...named.answers, ...guessed.answers].flat())
  const names = await db.read((tx) =>
    projectNames(
      tx,
      found.map(({ project_id }) => project_id),
    ),
  )
  return {
    data: found.map((row) => tracedView(row, names)),
    unreachable_cells: [...new Set([...named.unreachable, ...guessed.unreachable])],
    question: questionOf(wanted, wantedAddresses),
  }
}

function wantedOf({ tokens, messages, queueIds }: References, keys: VerpKeys): Wanted {
  const signed = tokens.flatMap((token) => readVerp(keys, token) ?? []).slice(0, maxReferences)
  const left = Math.max(0, maxReferences - signed.length)
  const few = messages.slice(0, left)
  return { signed, messages: few, queueIds: queueIds.slice(0, left - few.length) }
}

const allShards = Array.from({ length: shardCount }, (_none, shard) => shard)

export async function findNamed(
  tx: ReadTx,
  { shards = allShards }: Pick<Cell, 'shards'>,
  { signed, messages, queueIds }: Wanted,
): Promise<Found[]> {
  await disableSeqScan(tx)
  const here = new Set(shards)
  const found = matched(
    'return_path',
    await findRecipients(
      tx,
      signed.filter(({ shard }) => here.has(shard)),
    ),
  )
  for (const { id, recipientNo } of messages)
    found.push(...matched('message_id', await findMessage(tx, id, recipientNo, shards)))
  return [...found, ...matched('queue_id', await findByQueueId(tx, queueIds, eachQueueId))]
}

export async function findAddressed(tx: ReadTx, wanted: readonly AddressOnDay[]): Promise<Found[]> {
  await disableSeqScan(tx)
  return matched('recipient', await findByAddress(tx, wanted, eachAddress))
}

const matched = (matched_by: MatchedBy, rows: readonly TracedRow[]): Found[] =>
  rows.map((row) => ({ ...row, matched_by }))

const hourMs = 3_600_000
const everTime = { from: new Date('2000-01-01T00:00:00Z'), to: new Date('3000-01-01T00:00:00Z') }

/** A day without a time zone: from its start in the easternmost zone until its end in the westernmost one. */
function addressesOnDays({ addresses, days }: References): AddressOnDay[] {
  const periods = days.map((day) => ({
    from: new Date(day.getTime() - 14 * hourMs),
    to: new Date(day.getTime() + 36 * hourMs),
  }))
  return addresses.flatMap((address) =>
    (periods.length > 0 ? periods : [everTime]).map((period) => ({ address, ...period })),
  )
}

const order: readonly MatchedBy[] = ['return_path', 'message_id', 'queue_id', 'recipient']

/** Each recipient once, with its best match: certain ones first, then the newest. */
function chosen(found: readonly Found[]): Found[] {
  const sorted = found.toSorted(
    (one, other) =>
      order.indexOf(one.matched_by) - order.indexOf(other.matched_by) ||
      Number(other.message_id > one.message_id) - Number(other.message_id < one.message_id),
  )
  const known = new Set<string>()
  return sorted
    .filter(({ message_id, recipient_no }) => {
      const key = `${message_id} ${recipient_no}`
      // A reference to the message adds nothing to a reference to its recipient.
      const isNew = !known.has(key) && !(recipient_no === null && known.has(message_id))
      known.add(key).add(message_id)
      return isNew
    })
    .slice(0, maxMessages)
}

function tracedView(row: Found, names: ReadonlyMap<number, string>): Static<typeof TracedMessage> {
  const { message_id, project_id, recipient_no, address, status, created_at, matched_by } = row
  return {
    ...{ message_id, project_id, project_name: names.get(project_id) ?? null },
    recipient:
      recipient_no === null || address === null || status === null
        ? null
        : { no: recipient_no, address, status },
    created_at: created_at.toISOString(),
    matched_by,
    is_certain: matched_by === 'return_path',
  }
}

/** Longer than the queue ids of MTAs. A longer word that was pasted can be a secret. */
const longestQueueId = 24

const shortened = (queueId: string): string =>
  queueId.length <= longestQueueId ? queueId : `${queueId.slice(0, longestQueueId / 2)}…`

function questionOf({ signed, messages, queueIds }: Wanted, addresses: readonly AddressOnDay[]): string {
  const parts = [
    ...signed.map(({ messageId, recipientNo }) => `signed ${messageId} recipient ${recipientNo}`),
    ...messages.map(({ id }) => `message ${id}`),
    ...queueIds.map((id) => `queue id ${shortened(id)}`),
    ...new Set(addresses.map(({ address }) => `recipient ${address}`)),
  ]
  return parts.length === 0 ? 'no reference recognized' : parts.join(', ')
}
