import { To } from '../../../components/link.tsx'
import { usePolicies } from './policies.ts'

/** The policy's name, linked to its page; only its id if it was deleted. */
export function PolicyLink({ id, isInText = false }: { id: number; isInText?: boolean }) {
  const policies = usePolicies()
  const name = policies.data?.data.find((policy) => policy.id === id)?.name
  if (policies.data && name === undefined) return <>{id} (deleted)</>
  return (
    <To to="/policies/$id" params={{ id: String(id) }} inherit underline={isInText ? 'always' : 'hover'}>
      {name ?? id}
    </To>
  )
}
