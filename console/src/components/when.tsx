const units: [seconds: number, name: Intl.RelativeTimeFormatUnit][] = [
  [60, 'second'],
  [3600, 'minute'],
  [86_400, 'hour'],
  [2_592_000, 'day'],
  [31_536_000, 'month'],
  [Number.POSITIVE_INFINITY, 'year'],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

/** How long ago, with the exact time in UTC behind it: what an operator quotes must mean the same to everybody. */
export function When({ at, never = 'never' }: { at: string | null; never?: string }) {
  if (at === null) return <span>{never}</span>
  return (
    <time dateTime={at} title={exactly(at)}>
      {ago(at)}
    </time>
  )
}

export const exactly = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`

function ago(at: string): string {
  const seconds = (Date.parse(at) - Date.now()) / 1000
  let divisor = 1
  for (const [limit, name] of units) {
    if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / divisor), name)
    divisor = limit
  }
  return exactly(at)
}
