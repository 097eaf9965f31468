import type { CustomerDb, Database, Db, UnscopedDb } from './db.ts'
import type { HintListener } from './hints.ts'

/**
 * A mail database. Projects are hashed to shards, and shards are assigned to cells, so all of a project's
 * mail is in one cell. The default is a single cell in the control database (docs/decisions/0017-cells.md).
 */
export interface Cell {
  name: string
  /** Undefined: all shards. */
  shards: readonly number[] | undefined
  /** Connections to the cell's database, by role. Its `control` schema is a read-only replica. */
  admin: Db
  customer: CustomerDb
  mail: UnscopedDb
  /** Hints sent in the cell's database. */
  hints: HintListener
}

export const shardCount = 1024

/** The same hash as `postern.shard_of`. */
export const shardOf = (projectId: number): number =>
  Number((((BigInt(projectId) & 0x7fff_ffffn) * 2_654_435_761n) >> 22n) & 1023n)

/** Returns the database that contains a project's mail. */
export type MailOf = (projectId: number) => UnscopedDb

export class Cells {
  readonly all: readonly [Cell, ...Cell[]]
  readonly #byShard: readonly Cell[]

  /** Throws if a shard is not assigned to a cell. */
  constructor(all: readonly [Cell, ...Cell[]]) {
    this.all = all
    this.#byShard = Array.from({ length: shardCount }, (_none, shard) => {
      const cell = all.find(({ shards }) => shards === undefined || shards.includes(shard))
      if (!cell) throw new Error(`shard ${shard} is not assigned to a cell`)
      return cell
    })
  }

  readonly of = (projectId: number): Cell =>
    this.all.length === 1 ? this.all[0] : this.ofShard(shardOf(projectId))

  readonly mailOf: MailOf = (projectId) => this.of(projectId).mail

  ofShard(shard: number): Cell {
    const cell = this.#byShard[shard]
    if (!cell) throw new Error(`shard ${shard} does not exist`)
    return cell
  }
}

export const cellIn = (
  database: Database,
  { name, shards }: { name: string; shards?: readonly number[] },
): Cell => ({
  name,
  shards,
  admin: database.as('admin'),
  customer: database.asCustomer(),
  mail: database.as('mail'),
  hints: database.hints,
})
