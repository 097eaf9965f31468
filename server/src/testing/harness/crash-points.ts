import type { Db } from '../../platform/db/db.ts'

interface Planes {
  db: Db
  mailDb: Db
}

/** Every moment at which somebody who works with both planes can die, in the words that `crashAt` takes. */
export const stepsOfBoth = ['admin read', 'mail read', 'admin transaction', 'mail transaction']

/** Throws at one kind of step, before the first such is done or after. */
export function crashAt({ db, mailDb }: Planes, at: string, moment: 'before' | 'after'): Planes {
  const around = (inner: Db, name: string): Db => {
    const step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
      if (`${name} ${what}` !== at) return work()
      if (moment === 'after') await work()
      throw new Error('died')
    }
    return {
      transaction: (work) => step('transaction', () => inner.transaction(work)),
      dryRun: (work) => inner.dryRun(work),
      read: (work) => step('read', () => inner.read(work)),
    }
  }
  return { db: around(db, 'admin'), mailDb: around(mailDb, 'mail') }
}
