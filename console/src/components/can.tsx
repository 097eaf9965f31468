import { createContext, type ReactNode, useContext } from 'react'
import type { OperationId } from '../api/client.ts'

/** Whether the signed-in user can make a change, or change a field of the resource. */
export type CanDo = (operation: OperationId, field?: string) => boolean

/** Each entrance decides: by an administrator's rights, or by a member's role. */
export const CanContext = createContext<CanDo>(() => false)

/** Actions that the user cannot take are not shown. The server checks every request. */
export const useCan = (): CanDo => useContext(CanContext)

export function Can({
  change: operation,
  field,
  otherwise,
  children,
}: {
  change: OperationId
  /** Required for an operation that is allowed only for some fields. */
  field?: string
  /** Shown instead, if the change is not allowed. */
  otherwise?: ReactNode
  children: ReactNode
}) {
  return useCan()(operation, field) ? children : otherwise
}
