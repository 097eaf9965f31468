import type { ComponentProps } from 'react'
import { useMany } from '../../api/queries.ts'
import { type Change, Changes as ChangesWithNames } from '../../components/changes.tsx'

/** Values before and after, with the names of users and plans. */
export function Changes(props: Omit<ComponentProps<typeof ChangesWithNames>, 'nameOf'>) {
  return <ChangesWithNames {...props} nameOf={useNames(props.changes)} />
}

/** Names of users and plans, shown instead of their ids, and short texts for nested values. */
function useNames(changes: Change[]): (field: string, value: unknown) => string | undefined {
  const idsOf = (...fields: string[]) => {
    const values = changes.filter(({ field }) => fields.includes(field)).flatMap((c) => [c.before, c.after])
    return [...new Set(values.filter((value) => typeof value === 'number'))].map((id) => ({ id }))
  }
  const users = useMany('users.show', idsOf('user_id'))
  const plans = useMany('plans.show', idsOf('plan_id', 'admin_plan_id'))
  return (field, value) => {
    if (field === 'user_id') return users.find(({ id }) => id === value)?.email
    if (field === 'dns_records' && Array.isArray(value)) return `${value.length} records`
    if (field === 'identity' && isIdentity(value)) return value.state
    if (field === 'plan' && isPlan(value)) return value.name
    return field.endsWith('plan_id') ? plans.find(({ id }) => id === value)?.name : undefined
  }
}

const isIdentity = (value: unknown): value is { state: string } =>
  typeof value === 'object' && value !== null && 'state' in value && typeof value.state === 'string'

const isPlan = (value: unknown): value is { name: string } =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
