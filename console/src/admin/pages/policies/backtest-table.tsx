import { Group, Table, Title } from '@mantine/core'
import type { Backtest } from '../../../api/operations.gen.ts'
import { Copy } from '../../../components/copy.tsx'
import { To } from '../../../components/link.tsx'
import { number } from '../../../components/numbers.ts'
import { ExactTime } from '../../../components/relative-time.tsx'
import { exactTime } from '../../../components/zone.ts'
import classes from './backtest-table.module.css'
import { basisOf, type Signal, signals, withUnit } from './sentences.ts'

type BacktestFiring = Backtest['firings'][number]

/** The firings of a backtest, for screen readers and for copying. */
export function BacktestTable({ firings, signal }: { firings: BacktestFiring[]; signal: Signal }) {
  const titles = [
    'Project',
    'Time',
    signals[signal].label,
    'Figures',
    'Stopped or delayed',
    'Locked by an administrator',
  ]
  return (
    <>
      <Group justify="space-between">
        <Title order={3}>All firings of the backtest</Title>
        <Copy text={textOf(firings, signal, titles)} label="Copy table" />
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long table must be scrollable by keyboard. */}
      <section className={classes.scroll} aria-label="Firings of the backtest" tabIndex={0}>
        <Table aria-label="Firings of the backtest" verticalSpacing={5} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              {titles.map((title) => (
                <Table.Th key={title} scope="col">
                  {title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {firings.map((firing) => (
              <Table.Tr key={`${firing.project_id} ${firing.at}`}>
                <Table.Td>
                  <To
                    to="/projects/$projectId/sending"
                    params={{ projectId: String(firing.project_id) }}
                    inherit
                  >
                    {firing.project_name}
                  </To>
                </Table.Td>
                <Table.Td>
                  <ExactTime at={firing.at} />
                </Table.Td>
                <Table.Td>{withUnit(signal, firing.value)}</Table.Td>
                <Table.Td>{basisOf(signal, firing)}</Table.Td>
                <Table.Td>{number(firing.recipients_stopped)}</Table.Td>
                <Table.Td>
                  {firing.locked_by_administrator_at === null ? (
                    'no'
                  ) : (
                    <ExactTime at={firing.locked_by_administrator_at} />
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </section>
    </>
  )
}

/** Tab-separated, which spreadsheets accept. In UTC, because it is copied to other people. */
function textOf(firings: BacktestFiring[], signal: Signal, titles: string[]): string {
  const rows = firings.map((firing) => [
    firing.project_name,
    exactTime(firing.at, 'utc'),
    withUnit(signal, firing.value),
    basisOf(signal, firing),
    firing.recipients_stopped,
    firing.locked_by_administrator_at === null ? 'no' : exactTime(firing.locked_by_administrator_at, 'utc'),
  ])
  return [titles, ...rows].map((row) => row.join('\t')).join('\n')
}
