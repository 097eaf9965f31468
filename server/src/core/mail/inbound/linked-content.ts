// The content of a download link: a whole message or one attachment.

import type { Cells } from '../../../platform/db/cells.ts'
import type { AnalysisThreads } from './analysis-threads.ts'
import { findBody, findBodyOwner } from './inbound.sql.ts'
import { type Linked, type LinkKeys, readLink } from './link.ts'

export interface PartDeps {
  /** A link identifies the cell. */
  cells: Pick<Cells, 'ofShard'>
  analysisThreads: AnalysisThreads
  linkKeys: LinkKeys
}

export interface Part {
  content: Buffer
  type: 'message/rfc822' | 'application/octet-stream'
  filename: string
}

/** The target of a link, before its content is read. */
export interface OwnedLink {
  link: Linked
  projectId: number
}

/** Undefined if the link is invalid or expired, or the message has been purged. */
export async function findLinked(
  { cells, linkKeys }: PartDeps,
  token: string,
): Promise<OwnedLink | undefined> {
  const link = readLink(linkKeys, token, new Date())
  if (!link) return undefined
  const { mail } = cells.ofShard(link.shard)
  const projectId = await mail.readOne((tx) => findBodyOwner(tx, link.shard, link.bodyId))
  return projectId === undefined ? undefined : { link, projectId }
}

/** Undefined if the message has been purged or the attachment does not exist. */
export async function readPart(
  { cells, analysisThreads }: PartDeps,
  { link, projectId }: OwnedLink,
): Promise<Part | undefined> {
  const raw = await cells.ofShard(link.shard).mail.readOne((tx) => findBody(tx, link.shard, link.bodyId))
  if (!raw) return undefined
  if (link.attachment === null) return { content: raw, type: 'message/rfc822', filename: 'mail.eml' }
  const content = await analysisThreads.extract(
    { raw, attachment: link.attachment },
    // Downloads have separate limits (intake/inbound/download-links.ts).
    { network: `links of project ${projectId}`, addressee: `project ${projectId}`, isUnlimited: true },
  )
  return (
    content && { content: Buffer.from(content), type: 'application/octet-stream', filename: 'attachment' }
  )
}
