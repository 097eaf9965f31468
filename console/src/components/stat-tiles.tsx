import type { ReactNode } from 'react'
import { number } from './numbers.ts'
import classes from './stat-tiles.module.css'
import type { Tone } from './tone.ts'

export function StatTiles({ children }: { children: ReactNode }) {
  return <dl className={classes.tiles}>{children}</dl>
}

export function StatTile({
  label,
  value,
  note,
  tone,
}: {
  label: string
  value: ReactNode
  note?: ReactNode
  tone?: Tone | undefined
}) {
  return (
    <div className={classes.tile}>
      <dt>{label}</dt>
      <dd data-tone={tone}>{value}</dd>
      {note && <dd className={classes.note}>{note}</dd>}
    </div>
  )
}

/** Usage of a limit. */
export function Meter({
  label,
  used,
  limit,
  shown = number,
}: {
  label: string
  used: number
  limit: number
  shown?: (value: number) => string
}) {
  const share = limit === 0 ? (used > 0 ? 1 : 0) : used / limit
  const tone = share > 1 ? 'bad' : share >= 0.9 ? 'warn' : 'good'
  return (
    <div className={classes.meter}>
      <div className={classes.meterLine}>
        <span>{label}</span>
        <span>
          {shown(used)} of {shown(limit)}
        </span>
      </div>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" className={classes.bar}>
        <rect width="100" height="4" className={classes.ground} />
        <rect width={Math.min(100, share * 100)} height="4" className={classes[tone]} />
      </svg>
    </div>
  )
}
