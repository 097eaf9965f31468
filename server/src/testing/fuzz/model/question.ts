import type { View } from './world.ts'

/** A question to which the model knows the whole answer. */
export interface Question {
  operation: string
  params: Record<string, number | string>
  query?: Record<string, string | number | boolean>
  /** Undefined: 404. What has no version has no ETag. */
  expected: { view: View; version: number | null } | { list: View[] } | undefined
}
