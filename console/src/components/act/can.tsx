import type { ReactNode } from 'react'
import type { MutationId } from '../../api/client.ts'
import { limitedRights } from '../../api/operations.gen.ts'
import { useMe } from '../../api/session.ts'

/** Whether the signed-in administrator can make a change, or change a field of the resource. */
export type CanDo = (operation: MutationId, field?: string) => boolean

/** Actions that the administrator's rights do not allow are not shown. The server checks the rights on every request. */
export function useCan(): CanDo {
  const { rights } = useMe()
  return (operation, field) => {
    if (rights === 'full') return true
    const allowed: { readonly [rights: string]: true | readonly string[] } = limitedRights[operation]
    const fields = allowed[rights ?? ''] ?? []
    return fields === true || (field !== undefined && fields.includes(field))
  }
}

export function Can({
  change: operation,
  field,
  otherwise,
  children,
}: {
  change: MutationId
  /** Required for an operation that some rights allow only for some fields. */
  field?: string
  /** Shown instead, if the change is not allowed. */
  otherwise?: ReactNode
  children: ReactNode
}) {
  return useCan()(operation, field) ? children : otherwise
}
