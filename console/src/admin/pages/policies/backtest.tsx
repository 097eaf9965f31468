import { Stack, Text } from '@mantine/core'
import { Fragment } from 'react'
import type { Backtest, Policy } from '../../../api/operations.gen.ts'
import { To } from '../../../components/link.tsx'
import { counted, number } from '../../../components/numbers.ts'
import { BacktestTable } from './backtest-table.tsx'
import { BacktestTimeline } from './backtest-timeline.tsx'
import { backtestDays } from './policies.ts'

type Tested = Pick<Policy, 'signal'> & { kind: Policy['intervention']['kind'] }

/** When a policy would have fired: the totals, a timeline and a table. */
export function BacktestResult({ backtest, of: { signal, kind } }: { backtest: Backtest; of: Tested }) {
  const { firings, assumptions, firing_count: fired, is_complete, project_count: projects } = backtest
  const notes = [
    `${counted(projects, 'project was', 'projects were')} evaluated.`,
    ...(is_complete ? [] : ['There is more than one backtest evaluates.']),
    ...(firings.length < fired ? [`The first ${counted(firings.length, 'firing')} are shown.`] : []),
    ...assumptions,
  ]
  return (
    <Stack gap="sm">
      <Text role="status">{totalsOf(backtest, kind)}</Text>
      {firings.length > 0 && (
        <>
          <BacktestTimeline backtest={backtest} signal={signal} />
          <BacktestTable firings={firings} signal={signal} />
        </>
      )}
      <Missed backtest={backtest} />
      <Text size="xs" c="dimmed">
        {notes.join(' ')}
      </Text>
    </Stack>
  )
}

const stopped: Record<Tested['kind'], string | undefined> = {
  warn: undefined,
  pace: 'delayed',
  hold: 'delayed',
  lock: 'stopped',
}

/** "Would have fired 12 times for 4 projects; 3 of them were locked by an administrator anyway; …". */
function totalsOf(backtest: Backtest, kind: Tested['kind']): string {
  const { firing_count: fired, fired_project_count, also_locked_count: locked, recipients_stopped } = backtest
  if (fired === 0) return `Would not have fired in the last ${backtestDays} days.`
  const effect = stopped[kind]
  const parts = [
    `Would have fired ${fired === 1 ? 'once' : counted(fired, 'time')} for ${counted(fired_project_count, 'project')}`,
    lockedOf(locked, fired_project_count),
    ...(effect ? [`${counted(recipients_stopped, 'recipient')} ${effect}`] : []),
  ]
  return `${parts.join('; ')}.`
}

function lockedOf(locked: number, of: number): string {
  if (locked === 0) return `no administrator locked ${of === 1 ? 'it' : 'any of them'} afterwards`
  const which = of === 1 ? 'it' : `${number(locked)} of them`
  return `${which} ${locked === 1 ? 'was' : 'were'} locked by an administrator anyway`
}

const maxNamed = 5

/** Projects that administrators restricted and for which the policy would not have fired. */
function Missed({ backtest }: { backtest: Backtest }) {
  const fired = new Set(backtest.firings.map(({ project_id }) => project_id))
  const missed = new Map(
    backtest.administrator_interventions
      .filter(({ kind, project_id }) => kind !== 'warn' && !fired.has(project_id))
      .map(({ project_id, project_name }) => [project_id, project_name]),
  )
  // Of more firings, only the first are listed.
  if (missed.size === 0 || backtest.firings.length < backtest.firing_count) return null
  return (
    <Text size="sm">
      Administrators restricted {counted(missed.size, 'other project')}, for which the policy would not have
      fired:{' '}
      {[...missed].slice(0, maxNamed).map(([id, name], index) => (
        <Fragment key={id}>
          {index > 0 && ', '}
          <To to="/projects/$projectId/sending" params={{ projectId: String(id) }} inherit underline="always">
            {name}
          </To>
        </Fragment>
      ))}
      {missed.size > maxNamed && ` and ${missed.size - maxNamed} more`}.
    </Text>
  )
}
