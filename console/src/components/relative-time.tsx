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
  if (at === null) return <span>{never}</span>
  return (
    <time dateTime={at} title={`${localTime(at)} · ${utcTime(at)}`}>
      {ago(at)}
    </time>
  )
}

/** The exact time in the viewer's time zone. The tooltip shows UTC, which is the same for every operator. */
export function ExactTime({ at }: { at: string }) {
  return (
    <time dateTime={at} title={utcTime(at)}>
      {localTime(at)}
    </time>
  )
}

export const utcTime = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`

// The Swedish locale formats dates as in ISO 8601: 2026-11-14 09:30:00.
const local = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })
const zone = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' })

/** `2026-11-14 10:30:00 CET`. */
export function localTime(at: string): string {
  const time = new Date(at)
  const name = zone.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value
  return [local.format(time), name].join(' ')
}

function ago(at: string): string {
  const seconds = (Date.parse(at) - Date.now()) / 1000
  let divisor = 1
  for (const [limit, name] of units) {
    if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / divisor), name)
    divisor = limit
  }
  return utcTime(at)
}
