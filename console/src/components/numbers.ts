const integers = new Intl.NumberFormat('en')
const mebibytes = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

export const number = (value: number): string => integers.format(value)

/** "1 recipient", "1,200 recipients". */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${number(count)} ${count === 1 ? noun : plural}`

/** The server counts up to 10,000; counting further would be slow. */
export const isCapped = (count: number): boolean => count > 10_000
export const upTo = (count: number): string => (isCapped(count) ? 'more than 10,000' : number(count))

/** At most two digits after the point. */
export const decimal = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: 2 })

/** "90 minutes", "24 hours", "7 days". */
export function duration(minutes: number): string {
  if (minutes > 1440 && minutes % 1440 === 0) return counted(minutes / 1440, 'day')
  return minutes > 0 && minutes % 60 === 0 ? counted(minutes / 60, 'hour') : counted(minutes, 'minute')
}

/** "12 s", "5 min", "3 h", "2 d". Rounded down. */
export function age(seconds: number): string {
  if (seconds < 60) return `${Math.floor(Math.max(0, seconds))} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 2 * 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`
}

export const bytes = (value: number): string =>
  value < 1024 ** 3
    ? `${mebibytes.format(value / 1024 ** 2)} MiB`
    : `${mebibytes.format(value / 1024 ** 3)} GiB`

export const percent = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${decimal((100 * part) / whole)} %`
