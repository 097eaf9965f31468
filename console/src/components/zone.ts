/** The time zone in which times are shown and entered: the viewer's own zone, or UTC. Times of the API are in UTC. */
export type Zone = 'local' | 'utc'

export const otherZone = (zone: Zone): Zone => (zone === 'utc' ? 'local' : 'utc')

/** An hour is shown as 00:30 and not as 24:30. */
const hourCycle = 'h23'
const optionsOf = (zone: Zone) => (zone === 'utc' ? { timeZone: 'UTC' } : {})
// The Swedish locale formats dates as in ISO 8601: 2026-11-14 09:30:00.
const timesIn = (zone: Zone) =>
  new Intl.DateTimeFormat('sv-SE', {
    ...{ dateStyle: 'short', timeStyle: 'medium', hourCycle },
    ...optionsOf(zone),
  })
const namesIn = (zone: Zone) =>
  new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short', ...optionsOf(zone) })
const times = { local: timesIn('local'), utc: timesIn('utc') }
const names = { local: namesIn('local'), utc: namesIn('utc') }

type Time = string | number | Date

/** `2026-11-14 10:30:00`. While a year is typed in a field, it has fewer than four digits. */
const plainTime = (at: Time, zone: Zone): string => times[zone].format(new Date(at)).padStart(19, '0')

/** `CET`, `GMT-5` or `UTC`. It depends on the time: in summer, it is another one. */
export const zoneName = (at: Time, zone: Zone): string =>
  names[zone].formatToParts(new Date(at)).find(({ type }) => type === 'timeZoneName')?.value ?? ''

/** The viewer's zone, such as `Europe/Berlin`. */
export const localZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

/** `2026-11-14 10:30:00 CET`. */
export const exactTime = (at: Time, zone: Zone): string => `${plainTime(at, zone)} ${zoneName(at, zone)}`

/** `2026-11-14 10:30`. */
export const minuteOf = (at: Time, zone: Zone): string => plainTime(at, zone).slice(0, 16)

/** The day of a time, `2026-11-14`. */
export const dayOf = (at: Time, zone: Zone): string => plainTime(at, zone).slice(0, 10)

/** When a day begins. A day without midnight begins an hour later. */
export function startOfDay(day: string, zone: Zone): Date {
  return new Date(`${day}T00:00:00${zone === 'utc' ? 'Z' : ''}`)
}

/** Some days later, or earlier: the days of a calendar, which do not all have 24 hours. */
export function addDays(day: string, days: number): string {
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() + days)
  return date.toISOString().slice(0, 10)
}

/** The first and the last day of a range as times. The last day is included; the API expects an exclusive end. */
export const periodOf = (
  { from, to }: { from?: string | undefined; to?: string | undefined },
  zone: Zone,
): { from?: string; to?: string } => ({
  ...(from && { from: startOfDay(from, zone).toISOString() }),
  ...(to && { to: startOfDay(addDays(to, 1), zone).toISOString() }),
})

/** For a field of the type datetime-local: `2026-11-14T10:30:00`. */
export const toField = (at: string, zone: Zone): string =>
  at === '' ? '' : plainTime(at, zone).replace(' ', 'T')

/** The time in such a field, in RFC 3339 to the second. '' if it is incomplete. Browsers omit seconds that are zero. */
export function ofField(text: string, zone: Zone): string {
  const at = new Date(zone === 'utc' ? `${text}Z` : text)
  return text === '' || Number.isNaN(at.getTime()) ? '' : secondOf(at)
}

/** `2026-11-14T09:30:00Z`. Fields show no milliseconds. */
export const secondOf = (at: Time): string => `${new Date(at).toISOString().slice(0, 19)}Z`
