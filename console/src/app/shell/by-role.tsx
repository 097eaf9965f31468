import type { ReactNode } from 'react'
import type { CustomerProject } from '../../api/operations.gen.ts'
import { CanContext, type CanDo } from '../../components/can.tsx'
import { allowedRoles } from '../operations.gen.ts'

/** Offers the changes that the member's role in the project allows. */
export function ByRole({ project: { role }, children }: { project: CustomerProject; children: ReactNode }) {
  const can: CanDo = (operation) => {
    const roles = allowedRoles[operation]
    return roles?.includes(role) ?? true
  }
  return <CanContext value={can}>{children}</CanContext>
}
