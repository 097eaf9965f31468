import { Fragment, useId } from 'react'
import type { Backtest } from '../../../api/operations.gen.ts'
import chart from '../../../components/chart.module.css'
import { To } from '../../../components/link.tsx'
import { counted } from '../../../components/numbers.ts'
import { useZone } from '../../../components/use-zone.tsx'
import { addDays, dayOf, exactTime, startOfDay, type Zone } from '../../../components/zone.ts'
import { kinds } from '../../../resources/interventions/kinds.ts'
import classes from './backtest-timeline.module.css'
import { figuresOf, type Signal } from './sentences.ts'

type BacktestFiring = Backtest['firings'][number]
type Intervention = Backtest['administrator_interventions'][number]

/** More rows than anybody compares. The table has all firings. */
const maxRows = 30
const rowHeight = 22
const diamond = 'M0,-6L6,0L0,6L-6,0Z'

/** From mild to strict: the stricter, the higher the bar. */
const bars = {
  pace: { height: 6, colour: '--postern-accepted', label: 'Paced by an administrator' },
  hold: { height: 10, colour: '--postern-bounced', label: 'Held by an administrator' },
  lock: { height: 14, colour: '--postern-complained', label: 'Locked by an administrator' },
}
type Bar = keyof typeof bars
const isBar = (kind: string): kind is Bar => Object.hasOwn(bars, kind)

/** One row per project, with its firings and what administrators did themselves. Screen readers get the table instead. */
export function BacktestTimeline({ backtest, signal }: { backtest: Backtest; signal: Signal }) {
  const id = useId()
  const zone = useZone()
  const { from, to } = backtest
  const [start, end] = [Date.parse(from), Date.parse(to)]
  const xOf = (at: string | number) => (100 * (new Date(at).getTime() - start)) / (end - start)
  const rows = rowsOf(backtest)
  const shown = rows.slice(0, maxRows)
  const weeks = weeksOf(from, to, zone)
  return (
    <figure className={chart.chart} aria-labelledby={id}>
      <figcaption id={id} className={chart.caption}>
        <strong>Firings by project</strong>
        <Legend kinds={new Set(shown.flatMap(({ acts }) => acts.map(({ kind }) => kind)))} />
      </figcaption>
      <div className={classes.rows}>
        {shown.map(({ projectId, name, firings, acts }) => (
          <Fragment key={projectId}>
            <To
              to="/projects/$projectId/sending"
              params={{ projectId: String(projectId) }}
              className={classes.name ?? ''}
              title={name}
            >
              {name}
            </To>
            <svg height={rowHeight} className={classes.track} aria-hidden="true">
              <Weeks days={weeks} xOf={xOf} />
              {acts.map((act) => (
                <ActBar key={`${act.kind} ${act.created_at}`} act={act} xOf={xOf} end={to} />
              ))}
              {firings.map((firing) => (
                <svg key={firing.at} x={`${xOf(firing.at)}%`} y={rowHeight / 2} overflow="visible">
                  <title>{`Fired: ${exactTime(firing.at, zone)}, ${figuresOf(signal, firing)}`}</title>
                  <path d={diamond} className={chart.event} />
                </svg>
              ))}
            </svg>
          </Fragment>
        ))}
        <span />
        <svg height={14} className={classes.track} aria-hidden="true">
          {weeks.map(({ day, at }) => (
            <text key={day} x={`${xOf(at)}%`} y={11} textAnchor="middle" className={chart.mark}>
              {day.slice(5)}
            </text>
          ))}
        </svg>
      </div>
      {rows.length > maxRows && (
        <p className={classes.more}>
          {counted(rows.length - maxRows, 'more project is', 'more projects are')} in the table.
        </p>
      )}
    </figure>
  )
}

interface Row {
  projectId: number
  name: string
  firings: BacktestFiring[]
  acts: (Intervention & { kind: Bar })[]
}

/** In the order of the first firing. */
function rowsOf({ firings, administrator_interventions }: Backtest): Row[] {
  const rows = new Map<number, Row>()
  for (const firing of firings) {
    const { project_id: projectId, project_name: name } = firing
    const row = rows.get(projectId) ?? { projectId, name, firings: [], acts: [] }
    row.firings.push(firing)
    rows.set(projectId, row)
  }
  for (const act of administrator_interventions) {
    const { kind } = act
    if (isBar(kind)) rows.get(act.project_id)?.acts.push({ ...act, kind })
  }
  return [...rows.values()]
}

function ActBar({
  act: { kind, created_at, ended_at },
  xOf,
  end,
}: {
  act: Row['acts'][number]
  xOf: (at: string) => number
  end: string
}) {
  const { height, colour, label } = bars[kind]
  const zone = useZone()
  const until = ended_at === null ? 'still in force' : `until ${exactTime(ended_at, zone)}`
  return (
    <rect
      x={`${xOf(created_at)}%`}
      // At least as wide as a bar that can be seen.
      width={`${Math.max(0.6, xOf(ended_at ?? end) - xOf(created_at))}%`}
      y={(rowHeight - height) / 2}
      height={height}
      rx={2}
      fill={`var(${colour})`}
      className={classes.act}
    >
      <title>{`${label}: ${exactTime(created_at, zone)}, ${until}`}</title>
    </rect>
  )
}

interface Midnight {
  day: string
  at: number
}

function Weeks({ days, xOf }: { days: Midnight[]; xOf: (at: number) => number }) {
  return (
    <>
      <line x1="0" x2="100%" y1={rowHeight / 2} y2={rowHeight / 2} className={chart.axis} />
      {days.map(({ day, at }) => (
        <line key={day} x1={`${xOf(at)}%`} x2={`${xOf(at)}%`} y2={rowHeight} className={chart.axis} />
      ))}
    </>
  )
}

/** Every seventh midnight; the first and the last day would be cut off. */
function weeksOf(from: string, to: string, zone: Zone): Midnight[] {
  const first = addDays(dayOf(from, zone), 2)
  return Array.from({ length: 60 }, (_, week) => addDays(first, week * 7))
    .map((day) => ({ day, at: startOfDay(day, zone).getTime() }))
    .filter(({ at }) => at < Date.parse(to))
}

function Legend({ kinds: used }: { kinds: Set<Bar> }) {
  return (
    <>
      <span className={chart.key}>
        <svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
          <path d={diamond} className={chart.event} />
        </svg>
        Firing
      </span>
      {(Object.keys(bars) as Bar[])
        .filter((kind) => used.has(kind))
        .map((kind) => (
          <span key={kind} className={chart.key}>
            <svg width="16" height="14" aria-hidden="true">
              <rect
                width="16"
                y={(14 - bars[kind].height) / 2}
                height={bars[kind].height}
                rx="2"
                fill={`var(${bars[kind].colour})`}
                className={classes.act}
              />
            </svg>
            Administrator’s {kinds[kind].noun}
          </span>
        ))}
    </>
  )
}
