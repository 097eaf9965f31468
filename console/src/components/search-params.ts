/** Reads the filters, order and page of a list from the URL. Invalid values are dropped. */
export type Params = Record<string, unknown>

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined
export const flag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)
export const whole = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
export const score = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) ? Math.min(100, Math.max(0, value)) : undefined
export const one =
  <T extends string>(...allowed: T[]) =>
  (value: unknown): T | undefined =>
    allowed.find((word) => word === value)

/** A day in the zone in which times are shown, such as 2026-11-14. */
export const day = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value))
    ? value
    : undefined

/** Omits undefined values, so that they are not in the URL. */
export function defined<T extends object>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
