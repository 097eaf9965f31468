import type { startInstallation } from './installation.ts'
import type { Planted } from './planted.ts'

type Installation = Awaited<ReturnType<typeof startInstallation>>

/** In the copies of control that cells have. The twin stands for a cell; nothing replicates to it. */
export function plantedInCells({ query, urlOf }: Installation): Planted[] {
  const cell = (url: string) => ({ POSTERN_CELLS: JSON.stringify([{ name: 'a', shards: '0-1023', url }]) })
  const env = cell(urlOf('twin'))
  const beat = (database: 'main' | 'twin', ago: string) =>
    query(
      database,
      `insert into control.heartbeat (at) values (now() - $1::interval) on conflict (id) do update set at = excluded.at`,
      [ago],
    )
  const forget = (database: 'main' | 'twin') => query(database, 'delete from control.heartbeat')
  return [
    {
      what: 'a control without a heartbeat',
      check: 'cells',
      env,
      level: 'failure',
      finding: /No heartbeat has been written in control yet/,
      remedy: /`postern worker` without POSTERN_CELL/,
    },
    {
      what: 'a control whose heartbeat has stopped',
      check: 'cells',
      env,
      plant: () => beat('main', '10 minutes'),
      level: 'failure',
      finding: /No heartbeat has been written in control for 60\d seconds/,
      remedy: /`postern worker` without POSTERN_CELL/,
    },
    {
      what: 'a cell that has no heartbeat',
      check: 'cells',
      env,
      plant: () => beat('main', '-1 hour'),
      level: 'failure',
      finding: /Cell "a" has no heartbeat of control/,
      remedy: /postern cell join --name a/,
    },
    {
      what: 'a cell whose copy of control is late',
      check: 'cells',
      env,
      plant: () => beat('twin', '2 minutes'),
      level: 'warning',
      finding: /copy of control in cell "a" is 1[23]\d seconds old; the cell stops sending at 300/,
      remedy: /postern cell join --name a/,
    },
    {
      what: 'a cell whose copy of control is too old',
      check: 'cells',
      env,
      plant: () => beat('twin', '2 hours'),
      undo: () => beat('twin', '-1 hour'),
      level: 'failure',
      finding: /copy of control in cell "a" is 72\d\d seconds old: the cell sends nothing/,
      remedy: /postern cell join --name a/,
    },
    {
      what: 'a cell that is not there',
      check: 'cells',
      env: cell('postgres://postern_app:swordfish@127.0.0.1:1/main'),
      level: 'failure',
      finding: /The database of cell "a" cannot be used/,
      remedy: /"url" in POSTERN_CELLS/,
    },
    {
      what: "a cell whose clock is not control's",
      check: 'cells.clock',
      env,
      plant: () => query('postgres', `alter database twin set postern.clock_offset = '-10 minutes'`),
      async undo() {
        await query('postgres', 'alter database twin reset postern.clock_offset')
        await forget('main')
        await forget('twin')
      },
      level: 'failure',
      finding: /clocks of control and of cell "a" are (599|600|601) seconds apart/,
      remedy: /NTP/,
    },
  ]
}
