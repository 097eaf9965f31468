import type { CustomerDb, Database, Db, UnscopedDb } from './db.ts'

/**
 * Where mail is. Projects are dealt out to shards, and shards to cells; a project's mail is in one cell alone. Without
 * further settings there is one cell, in the same database as everything else (docs/decisions/0017-cells.md).
 */
export interface Cell {
  name: string
  /** Those that it has; undefined: all of them. */
  shards: readonly number[] | undefined
  /** Each of the roles that reach mail, in the cell's own database. There, `control` is a copy that nobody writes. */
  admin: Db
  customer: CustomerDb
  mail: UnscopedDb
}

export const shardCount = 1024

/** As postern.shard_of has it. */
export const shardOf = (projectId: number): number =>
  Number((((BigInt(projectId) & 0x7fff_ffffn) * 2_654_435_761n) >> 22n) & 1023n)

/** The database in which the mail of a project is. */
export type MailOf = (projectId: number) => UnscopedDb

export class Cells {
  readonly all: readonly [Cell, ...Cell[]]
  readonly #byShard: readonly Cell[]

  /** Every shard must be in one of them. */
  constructor(all: readonly [Cell, ...Cell[]]) {
    this.all = all
    this.#byShard = Array.from({ length: shardCount }, (_none, shard) => {
      const cell = all.find(({ shards }) => shards === undefined || shards.includes(shard))
      if (!cell) throw new Error(`shard ${shard} is in no cell`)
      return cell
    })
  }

  readonly of = (projectId: number): Cell =>
    this.all.length === 1 ? this.all[0] : this.ofShard(shardOf(projectId))

  readonly mailOf: MailOf = (projectId) => this.of(projectId).mail

  ofShard(shard: number): Cell {
    const cell = this.#byShard[shard]
    if (!cell) throw new Error(`there is no shard ${shard}`)
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
})
