import { useState } from 'react'
import type { Selection } from './acts.tsx'

type Filter = NonNullable<Selection['filter']>

export interface ProjectSelection {
  /** Undefined if nothing is selected. */
  projects: Selection | undefined
  /** Whether all projects that match the filters are selected. */
  isAll: boolean
  has(id: number): boolean
  toggle(id: number): void
  select(projects: { id: number }[]): void
  selectAll(): void
  clear(): void
}

const nothing = { isAll: false, ids: [] as number[] }

/** The projects that are selected in the list. Another filter clears the selection; another page does not. */
export function useSelection(filter: Filter): ProjectSelection {
  const key = JSON.stringify(filter)
  const [state, setState] = useState({ key, ...nothing })
  const { isAll, ids } = state.key === key ? state : nothing
  const set = (part: Partial<typeof nothing>) => setState({ key, ...nothing, ...part })
  return {
    projects: isAll ? { filter } : ids.length > 0 ? { ids } : undefined,
    isAll,
    has: (id) => isAll || ids.includes(id),
    toggle: (id) => set({ ids: ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id] }),
    select: (projects) => set({ ids: [...new Set([...ids, ...projects.map(({ id }) => id)])] }),
    selectAll: () => set({ isAll: true }),
    clear: () => set({}),
  }
}
