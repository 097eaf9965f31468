import type { ReactNode } from 'react'
import { useMe } from '../../api/session.ts'
import { CanContext, type CanDo } from '../../components/can.tsx'
import { limitedRights } from '../operations.gen.ts'

/** Offers the changes that the administrator's rights allow. */
export function ByRights({ children }: { children: ReactNode }) {
  const { rights } = useMe()
  const can: CanDo = (operation, field) => {
    if (rights === 'full') return true
    const limits: Partial<Record<string, { readonly [rights: string]: true | readonly string[] }>> =
      limitedRights
    const fields = limits[operation]?.[rights ?? ''] ?? []
    return fields === true || (field !== undefined && fields.includes(field))
  }
  return <CanContext value={can}>{children}</CanContext>
}
