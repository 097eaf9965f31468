import type { Tx, UnscopedDb } from '../../platform/db/db.ts'

/** Simulates a process that is killed at a point of its work with a database. */
export const points = [
  'before read',
  'after read',
  'before transaction',
  'in transaction',
  'after transaction',
] as const
export type Point = (typeof points)[number]

export class Killed extends Error {}

/** Dies at the n-th execution of a point, counted from 0. Then nothing works any more. */
export function killedAt(inner: UnscopedDb, point: Point, n: number, onKill: () => void): UnscopedDb {
  let executed = 0
  let isDead = false
  const isTime = (here: Point): boolean => {
    if (isDead) throw new Killed(point)
    return here === point && executed++ === n
  }
  const die = (): never => {
    isDead = true
    onKill()
    throw new Killed(point)
  }
  const read = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isTime('before read')) die()
    const result = await work()
    if (isTime('after read')) die()
    return result
  }
  return {
    dryRun: (work) => inner.dryRun(work),
    read: (work) => read(() => inner.read(work)),
    readOne: (query) => read(() => inner.readOne(query)),
    writeOne: (statement) => inner.writeOne(statement),
    async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
      if (isTime('before transaction')) die()
      const isIn = isTime('in transaction')
      const result = await inner.transaction(async (tx) => {
        const done = await work(tx)
        return isIn ? die() : done
      })
      if (isTime('after transaction')) die()
      return result
    },
  }
}
