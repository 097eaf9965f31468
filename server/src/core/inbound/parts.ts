import type { Cells } from '../../platform/db/cells.ts'
import type { Examiners } from './examiners.ts'
import { findBody } from './inbound.sql.ts'
import { type LinkKeys, readLink } from './link.ts'

export interface PartDeps {
  /** Whose mail it is and where, the link alone says. */
  cells: Pick<Cells, 'ofShard'>
  examiners: Examiners
  linkKeys: LinkKeys
}

export interface Part {
  content: Buffer
  type: 'message/rfc822' | 'application/octet-stream'
  filename: string
}

/** What a link leads to. Undefined for one that is not ours or is over, and when the mail is no longer kept. */
export async function findPart(
  { cells, examiners, linkKeys }: PartDeps,
  token: string,
): Promise<Part | undefined> {
  const linked = readLink(linkKeys, token, new Date())
  const raw =
    linked &&
    (await cells.ofShard(linked.shard).mail.glance((tx) => findBody(tx, linked.shard, linked.bodyId)))
  if (!raw) return undefined
  if (linked.attachment === null) return { content: raw, type: 'message/rfc822', filename: 'mail.eml' }
  const content = await examiners.extract({ raw, attachment: linked.attachment })
  return (
    content && { content: Buffer.from(content), type: 'application/octet-stream', filename: 'attachment' }
  )
}
