import type { UnscopedDb } from '../../platform/db/db.ts'

interface Sides {
  db: UnscopedDb
  mailDb: UnscopedDb
}

/** The steps at which code that uses both databases can crash. `crashAt` accepts these names. */
export const stepsOfBoth = ['admin read', 'mail read', 'admin transaction', 'mail transaction']

/** Throws at one kind of step, before or after its first execution. */
export function crashAt({ db, mailDb }: Sides, at: string, moment: 'before' | 'after'): Sides {
  const around = (inner: UnscopedDb, name: string): UnscopedDb => {
    const step = async <T>(kind: string, work: () => Promise<T>): Promise<T> => {
      if (`${name} ${kind}` !== at) return work()
      if (moment === 'after') await work()
      throw new Error('crashed')
    }
    return {
      transaction: (work) => step('transaction', () => inner.transaction(work)),
      dryRun: (work) => inner.dryRun(work),
      read: (work) => step('read', () => inner.read(work)),
      readOne: (query) => step('read', () => inner.readOne(query)),
      writeOne: (statement) => step('transaction', () => inner.writeOne(statement)),
    }
  }
  return { db: around(db, 'admin'), mailDb: around(mailDb, 'mail') }
}
