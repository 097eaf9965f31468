import type { View } from './world.ts'

/** A read request whose complete response the model can predict. */
export interface ExpectedRead {
  operation: string
  params: Record<string, number | string>
  query?: Record<string, string | number | boolean>
  /** Undefined for a 404. Resources without a version have no ETag. */
  expected: { view: View; version: number | null } | { list: View[] } | undefined
}
