import type { Cells } from '../../../platform/db/cells.ts'
import type { AnalysisThreads } from './analysis-threads.ts'
import { findBody, findBodyOwner } from './inbound.sql.ts'
import { type Linked, type LinkKeys, readLink } from './link.ts'

export interface PartDeps {
  /** Whose mail it is and where, the link alone says. */
  cells: Pick<Cells, 'ofShard'>
  examiners: AnalysisThreads
  linkKeys: LinkKeys
}

export interface Part {
  content: Buffer
  type: 'message/rfc822' | 'application/octet-stream'
  filename: string
}

/** What a link leads to, before any of it is read. */
export interface OwnedLink {
  link: Linked
  projectId: number
}

/** Undefined for one that is not ours or is over, and when the mail is no longer kept. */
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

/** Undefined when the mail is no longer kept, or has no such attachment. */
export async function readPart(
  { cells, examiners }: PartDeps,
  { link, projectId }: OwnedLink,
): Promise<Part | undefined> {
  const raw = await cells.ofShard(link.shard).mail.readOne((tx) => findBody(tx, link.shard, link.bodyId))
  if (!raw) return undefined
  if (link.attachment === null) return { content: raw, type: 'message/rfc822', filename: 'mail.eml' }
  const content = await examiners.extract(
    { raw, attachment: link.attachment },
    // Links have limits of their own (intake/inbound/download-links.ts).
    { network: `links of project ${projectId}`, addressee: `project ${projectId}`, isUnlimited: true },
  )
  return (
    content && { content: Buffer.from(content), type: 'application/octet-stream', filename: 'attachment' }
  )
}
