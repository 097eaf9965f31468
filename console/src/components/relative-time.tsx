import classes from './relative-time.module.css'
import { useZone } from './use-zone.tsx'
import { exactTime, otherZone, type Zone } from './zone.ts'

const units: [seconds: number, name: Intl.RelativeTimeFormatUnit][] = [
  [60, 'second'],
  [3600, 'minute'],
  [86_400, 'hour'],
  [2_592_000, 'day'],
  [31_536_000, 'month'],
  [Number.POSITIVE_INFINITY, 'year'],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

/** How long ago. The tooltip shows the exact time, in the viewer's time zone and in UTC. */
export function RelativeTime({ at, never = 'never' }: { at: string | null; never?: string }) {
  const zone = useZone()
  if (at === null) return <span>{never}</span>
  return (
    <time dateTime={at} title={`${exactTime(at, zone)} · ${otherTime(at, zone)}`}>
      {ago(at)}
    </time>
  )
}

/** The exact time in the chosen zone, with the other zone in the tooltip: UTC is the same for every operator. */
export function ExactTime({ at }: { at: string }) {
  const zone = useZone()
  return (
    <time dateTime={at} title={otherTime(at, zone)}>
      <span className={classes.part}>{exactTime(at, zone).slice(0, 10)}</span>{' '}
      <span className={classes.part}>{exactTime(at, zone).slice(11)}</span>
    </time>
  )
}

/** The exact time, and how long ago that is. */
export function ExactAndRelativeTime({ at, never }: { at: string | null; never?: string }) {
  if (at === null) return <RelativeTime at={at} never={never} />
  return (
    <>
      <ExactTime at={at} /> (<RelativeTime at={at} />)
    </>
  )
}

const otherTime = (at: string, zone: Zone): string => exactTime(at, otherZone(zone))

function ago(at: string): string {
  const seconds = (Date.parse(at) - Date.now()) / 1000
  let divisor = 1
  for (const [limit, name] of units) {
    if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / divisor), name)
    divisor = limit
  }
  return exactTime(at, 'utc')
}
