import { useElementSize } from '@mantine/hooks'
import { useId, useState } from 'react'
import classes from './chart.module.css'
import { number } from './numbers.ts'
import { useZone } from './use-zone.tsx'
import { minuteOf, type Zone, zoneName } from './zone.ts'

export interface Series {
  label: string
  /** A theme colour. */
  colour: string
  values: number[]
}

/** Something that happened. */
export interface ChartMark {
  /** RFC 3339, in UTC. */
  at: string
  /** The tooltip. */
  text: string
}

const foot = 18
const head = 14
const diamond = 'M0,-5L5,0L0,5L-5,0Z'
/** For the labels of the axis. */
const gutter = 52

/** Whether a time is on a day, 2026-01-31, or in an hour that begins at 2026-01-31T12:00:00.000Z. */
const isIn = (at: string, name = ''): boolean => name !== '' && at.startsWith(name.slice(0, 13))

/** Hours, `01-31 12:00 CET`, are shown in the chosen zone. Days are counted in UTC, which is shown if it is not the chosen zone. */
const titleOf = (name: string, unit: 'Day' | 'Hour', zone: Zone): string =>
  unit === 'Hour'
    ? `${minuteOf(name, zone).slice(5)} ${zoneName(name, zone)}`
    : zoneName(name, zone) === 'UTC'
      ? name
      : `${name} UTC`

/**
 * Values by day or hour, oldest first, as grouped bars. Implemented here because a chart library would be larger than the
 * rest of the console. Screen readers get the same data as a table.
 */
export function BarChart({
  title,
  unit = 'Day',
  names,
  series,
  format = number,
  height = 180,
  threshold,
  marks,
}: {
  title: string
  unit?: 'Day' | 'Hour'
  /** The days in UTC, 2026-01-31, or when the hours begin, in RFC 3339. */
  names: string[]
  series: Series[]
  format?: (value: number) => string
  height?: number
  /** Drawn as a dashed line: a value that should not be reached. */
  threshold?: number
  /** Drawn above the bars of their days or hours. */
  marks?: { label: string; on: ChartMark[] }
}) {
  const [at, setAt] = useState<number>()
  const id = useId()
  const zone = useZone()
  // Drawn at the width of its container, so that its text is the same size as other text.
  const { ref, width: available } = useElementSize<HTMLDivElement>()
  const width = Math.max(available, 1)
  const highest = Math.max(...series.flatMap(({ values }) => values))
  const top = Math.max(highest, threshold ?? 0) || 1
  const slot = Math.max(0, width - gutter) / names.length
  const xOf = (index: number) => gutter + index * slot
  const labelStep = unit === 'Hour' ? 6 : names.length > 7 ? 7 : 1
  const bar = (slot * 0.8) / series.length
  const barHeight = (value: number) =>
    value === 0 ? 0 : Math.max(1.5, (value / top) * (height - foot - head))
  const yOf = (value: number) => height - foot - (value / top) * (height - foot - head)
  const shown = at ?? names.length - 1
  const shownName = names[shown]
  // Half of one message is no label for an axis.
  const isExact = (value: number) => format !== number || Number.isInteger(value)
  const marksOf = (name: string | undefined) => marks?.on.filter((mark) => isIn(mark.at, name)) ?? []
  const hasMarks = marks !== undefined && names.some((name) => marksOf(name).length > 0)
  return (
    <figure className={classes.chart} aria-labelledby={id}>
      <figcaption id={id} className={classes.caption}>
        <strong>{title}</strong>
        {shownName !== undefined && <span>{titleOf(shownName, unit, zone)}</span>}
        {series.map(({ label, colour, values }) => (
          <span key={label} className={classes.key}>
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx="2" fill={`var(${colour})`} />
            </svg>
            {label} <b>{format(values[shown] ?? 0)}</b>
          </span>
        ))}
        {hasMarks && (
          <span className={classes.key}>
            <svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
              <path d={diamond} className={classes.event} />
            </svg>
            {marks.label} <b>{number(marksOf(shownName).length)}</b>
          </span>
        )}
        {threshold !== undefined && (
          <span className={classes.key}>
            <svg width="16" height="10" aria-hidden="true">
              <line x2="16" y1="5" y2="5" className={classes.threshold} />
            </svg>
            Threshold <b>{format(threshold)}</b>
          </span>
        )}
      </figcaption>
      <div ref={ref}>
        <svg width={width} height={height} aria-hidden="true" onMouseLeave={() => setAt(undefined)}>
          {[0, top / 2, top].map((value) => (
            <line
              key={value}
              x1={gutter}
              x2={width}
              y1={yOf(value)}
              y2={yOf(value)}
              className={classes.axis}
            />
          ))}
          {[top / 2, top].filter(isExact).map((value) => (
            <text key={value} x={gutter - 6} y={yOf(value) + 3} textAnchor="end" className={classes.mark}>
              {format(value)}
            </text>
          ))}
          {names.map((name, index) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the same figures are in the table below
            <g key={name} onMouseEnter={() => setAt(index)}>
              <rect
                x={xOf(index)}
                width={slot}
                height={height - foot}
                className={classes.slot}
                data-at={at === index || undefined}
              />
              {series.map(({ label, colour, values }, position) => (
                <rect
                  key={label}
                  x={xOf(index) + slot * 0.1 + position * bar}
                  y={height - foot - barHeight(values[index] ?? 0)}
                  width={bar}
                  height={barHeight(values[index] ?? 0)}
                  fill={`var(${colour})`}
                />
              ))}
              {marksOf(name).length > 0 && (
                <g transform={`translate(${xOf(index) + slot / 2} 7)`}>
                  <title>
                    {marksOf(name)
                      .map(({ text }) => text)
                      .join('\n')}
                  </title>
                  <path d={diamond} className={classes.event} />
                </g>
              )}
              {index % labelStep === names.length % labelStep && (
                <text x={xOf(index) + slot / 2} y={height - 4} textAnchor="middle" className={classes.mark}>
                  {unit === 'Hour' ? minuteOf(name, zone).slice(11) : name.slice(5)}
                </text>
              )}
            </g>
          ))}
          {threshold !== undefined && (
            <line
              x1={gutter}
              x2={width}
              y1={yOf(threshold)}
              y2={yOf(threshold)}
              className={classes.threshold}
            />
          )}
        </svg>
      </div>
      <table className={classes.table}>
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">{unit}</th>
            {series.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
            {hasMarks && <th scope="col">{marks.label}</th>}
          </tr>
        </thead>
        <tbody>
          {names.map((name, index) => (
            <tr key={name}>
              <th scope="row">{titleOf(name, unit, zone)}</th>
              {series.map(({ label, values }) => (
                <td key={label}>{format(values[index] ?? 0)}</td>
              ))}
              {hasMarks && (
                <td>
                  {marksOf(name)
                    .map(({ text }) => text)
                    .join('; ')}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}
