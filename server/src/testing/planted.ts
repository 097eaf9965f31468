import type { Told } from '../doctor/examine.ts'

/** Something that is made wrong in a good installation, and what `postern doctor` is to say of it. */
export interface Planted {
  what: string
  check: string
  env?: Record<string, string>
  plant?(): Promise<unknown>
  /** Where the others are to find it as it was. */
  undo?(): Promise<unknown>
  level: Told['level']
  finding: RegExp
  remedy: RegExp
}
