/** A page to go to, or a command. */
export interface Choice {
  key: string
  group: string
  label: string
  /** Distinguishes the choice from others with the same name. */
  note?: string
  select: () => void
}

export const command = (key: string, group: string, label: string, select: () => void): Choice => ({
  key,
  group,
  label,
  select,
})
