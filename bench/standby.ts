import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findBinaries, giveToPostgres, startCluster } from '../server/src/testing/peers/postgres.ts'
import type { Postern } from './postern.ts'

const exec = promisify(execFile)

/** A streaming standby of the measured PostgreSQL, on the same machine. */
export interface Standby {
  /** The postmaster's process id. */
  pid: number
  /** Waits until the standby has replayed everything that the primary has written. */
  untilReplayed(): Promise<void>
  stop(): Promise<void>
}

export async function startStandby({ ownerUrl, superuser }: Postern): Promise<Standby> {
  const home = await mkdtemp(path.join(tmpdir(), 'postern-bench-standby-'))
  await giveToPostgres(home)
  const data = path.join(home, 'data')
  const copy = [
    path.join(await findBinaries(), 'pg_basebackup'),
    ...['--dbname', ownerUrl, '--pgdata', data, '--write-recovery-conf', '--checkpoint', 'fast'],
  ]
  const [program = '', ...args] = userInfo().uid === 0 ? ['runuser', '-u', 'postgres', '--', ...copy] : copy
  await exec(program, args, { cwd: home })
  const cluster = await startCluster({ directory: home })
  return {
    pid: Number.parseInt(await readFile(path.join(data, 'postmaster.pid'), 'utf8'), 10),
    async untilReplayed() {
      const { rows } = await superuser.query<{ lsn: string }>(
        'select pg_current_wal_flush_lsn()::text as lsn',
      )
      for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(100)) {
        const { rowCount } = await superuser.query(
          'select from pg_stat_replication where replay_lsn >= $1::pg_lsn',
          [rows[0]?.lsn],
        )
        if (rowCount) return
      }
      throw new Error('The standby did not catch up within a minute.')
    },
    async stop() {
      await cluster.stop()
      await rm(home, { recursive: true, force: true })
    },
  }
}
