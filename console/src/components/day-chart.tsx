import { useElementSize } from '@mantine/hooks'
import { useId, useState } from 'react'
import classes from './chart.module.css'
import { number } from './stat-tiles.tsx'

export interface Series {
  label: string
  /** A theme colour. */
  colour: string
  values: number[]
}

const height = 180
const foot = 18

/**
 * Counts by day, oldest first, as grouped bars. Implemented here because a chart library would be larger than the
 * rest of the console. Screen readers get the same data as a table.
 */
export function DayChart({ title, days, series }: { title: string; days: string[]; series: Series[] }) {
  const [at, setAt] = useState<number>()
  const id = useId()
  // Drawn at the width of its container, so that its text is the same size as other text.
  const { ref, width: available } = useElementSize<HTMLDivElement>()
  const width = Math.max(available, 1)
  const top = Math.max(1, ...series.flatMap(({ values }) => values))
  const slot = width / days.length
  const bar = (slot * 0.8) / series.length
  const barHeight = (value: number) => (value === 0 ? 0 : Math.max(1.5, (value / top) * (height - foot - 14)))
  const shown = at ?? days.length - 1
  return (
    <figure className={classes.chart} aria-labelledby={id}>
      <figcaption id={id} className={classes.caption}>
        <strong>{title}</strong>
        <span>{days[shown]}</span>
        {series.map(({ label, colour, values }) => (
          <span key={label} className={classes.key}>
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx="2" fill={`var(${colour})`} />
            </svg>
            {label} <b>{number(values[shown] ?? 0)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={ref}>
        <svg width={width} height={height} aria-hidden="true" onMouseLeave={() => setAt(undefined)}>
          <line x1="0" x2={width} y1={height - foot} y2={height - foot} className={classes.axis} />
          <text x="0" y="10" className={classes.mark}>
            {number(top)}
          </text>
          {days.map((day, index) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the same figures are in the table below
            <g key={day} onMouseEnter={() => setAt(index)}>
              <rect
                x={index * slot}
                width={slot}
                height={height - foot}
                className={classes.slot}
                data-at={at === index || undefined}
              />
              {series.map(({ label, colour, values }, position) => (
                <rect
                  key={label}
                  x={index * slot + slot * 0.1 + position * bar}
                  y={height - foot - barHeight(values[index] ?? 0)}
                  width={bar}
                  height={barHeight(values[index] ?? 0)}
                  fill={`var(${colour})`}
                />
              ))}
              {index % 7 === days.length % 7 && (
                <text x={index * slot + slot / 2} y={height - 4} textAnchor="middle" className={classes.mark}>
                  {day.slice(5)}
                </text>
              )}
            </g>
          ))}
        </svg>
      </div>
      <table className={classes.table}>
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            {series.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day, index) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {series.map(({ label, values }) => (
                <td key={label}>{values[index]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}
