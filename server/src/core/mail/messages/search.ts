import type { Static } from 'typebox'
import { readInternationalAddress } from '../../../formats/address.ts'
import { type Cells, shardOf } from '../../../platform/db/cells.ts'
import type { Db, ReadTx } from '../../../platform/db/db.ts'
import { readCells } from '../../../platform/db/read-cells.ts'
import { PosternError } from '../../../platform/errors.ts'
import { domainName } from '../../control/domains/name.ts'
import { projectNames } from '../../control/projects/projects.ts'
import { disableSeqScan } from '../../shared/bounded-scan.ts'
import { namedPage, namedPageOf } from '../../shared/pages.ts'
import type { ScannedMessages } from './messages.sql.ts'
import { messageView, uuid } from './messages.ts'
import {
  findBlocked,
  findSendingProjects,
  type SearchFilter,
  type SendingProject,
  searchByProject,
  searchByRecipient,
} from './search.sql.ts'
import type { FoundMessage, Message, RecipientStatus } from './wire.ts'

/**
 * Searches the messages of all projects, in all cells, newest first. Every scan is bounded (core/shared/bounded-scan.ts): by an
 * index on recipients, or within the projects that own the sender's domain.
 */

export interface MessageSearch {
  recipient?: string | undefined
  sender?: string | undefined
  status?: RecipientStatus | undefined
  from?: Date | undefined
  to?: Date | undefined
  limit?: number
  cursor?: string
}

interface Page {
  data: Static<typeof FoundMessage>[]
  next_cursor: string | null
  unreachable_cells: string[]
}

const cellTimeoutMs = 5_000
/** Several projects can claim a domain name, but only one can verify it. */
const maxSendingProjects = 10
/** Messages that a page scans by sender. */
const scanLimit = 2_000

export async function searchMessages(
  { db, cells }: { db: Db; cells: Cells },
  search: MessageSearch,
): Promise<Page> {
  const { limit, last: beforeId } = namedPageOf(search, uuid)
  const sender = search.sender === undefined ? undefined : senderOf(search.sender)
  const senders = sender && (await db.read((tx) => findSenders(tx, sender.domain)))
  const filter = { ...search, beforeId, senderAddress: sender?.address }
  const { answers, unreachable } = await readCells(cells, cellTimeoutMs, async (tx, { shards }) => {
    const here = senders?.filter(
      ({ project_id }) => shards === undefined || shards.includes(shardOf(project_id)),
    )
    const found = merged(await scanCell(tx, filter, here, limit), limit)
    const blocked = await findBlocked(tx, [...new Set(found.rows.map(({ project_id }) => project_id))])
    return {
      rows: found.rows.map((row) => messageView(row, blocked.includes(row.project_id))),
      next: found.next,
    }
  })
  const { rows, next } = merged(answers, limit)
  const names = await db.read((tx) =>
    projectNames(
      tx,
      rows.map(({ project_id }) => project_id),
    ),
  )
  return {
    ...namedPage(
      rows.map((message) => foundView(message, names)),
      next,
    ),
    unreachable_cells: unreachable,
  }
}

export async function findSenders(tx: ReadTx, domain: string): Promise<SendingProject[]> {
  await disableSeqScan(tx)
  return findSendingProjects(tx, domain, maxSendingProjects)
}

/** One scan for a recipient; otherwise one for each sending project. */
export async function scanCell(
  tx: ReadTx,
  filter: SearchFilter,
  senders: readonly SendingProject[] | undefined,
  limit: number,
): Promise<ScannedMessages[]> {
  await disableSeqScan(tx)
  const { recipient } = filter
  if (recipient === undefined) {
    const bound = Math.ceil(scanLimit / Math.max(1, senders?.length ?? 0))
    const found: ScannedMessages[] = []
    for (const sender of senders ?? [])
      found.push(await searchByProject(tx, sender, filter, { limit, bound }))
    return found
  }
  if (senders?.length === 0) return []
  const identityIds = senders?.flatMap(({ identity_ids }) => identity_ids)
  return [await searchByRecipient(tx, { ...filter, recipient, identityIds }, limit)]
}

/**
 * Merges pages, newest first. A page that continues may have more messages below its `next`, so nothing older than that is
 * shown yet. While shards are moved, a message can be in two cells.
 */
function merged<Row extends { id: string }>(
  pages: readonly { rows: readonly Row[]; next: string | null }[],
  limit: number,
): { rows: Row[]; next: string | null } {
  const horizon = pages.reduce((newest, { next }) => (next !== null && next > newest ? next : newest), '')
  const byId = new Map(pages.flatMap((page) => page.rows).map((row) => [row.id, row]))
  const rows = [...byId.values()]
    .filter(({ id }) => id >= horizon)
    .toSorted((one, other) => Number(other.id > one.id) - Number(other.id < one.id))
  const shown = rows.slice(0, limit)
  return { rows: shown, next: rows.length > limit ? (shown.at(-1)?.id ?? null) : horizon || null }
}

const foundView = (
  message: Static<typeof Message>,
  names: ReadonlyMap<number, string>,
): Static<typeof FoundMessage> => ({ ...message, project_name: names.get(message.project_id) ?? null })

/** An address or a domain name. */
function senderOf(text: string): { domain: string; address: string | undefined } {
  if (!text.includes('@')) return { domain: senderDomain(text), address: undefined }
  const read = readInternationalAddress(text)
  if ('fault' in read) throw invalid(`"sender" ${read.fault}.`)
  return { domain: read.domain, address: `${read.local}@${read.domain}`.toLowerCase() }
}

function senderDomain(text: string): string {
  try {
    return domainName(text)
  } catch (error) {
    if (error instanceof PosternError) throw invalid('"sender" must be an address or a domain name.')
    throw error
  }
}

const invalid = (message: string): PosternError => new PosternError('invalid_parameter', message)
