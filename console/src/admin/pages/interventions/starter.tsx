import type { Intervention } from '../../../api/operations.gen.ts'
import { PolicyLink } from '../policies/policy-link.tsx'

/** Who started an intervention: "by …". */
export function Starter({ of: { started_by, policy_id, source } }: { of: Intervention }) {
  if (policy_id !== null) {
    return (
      <>
        the policy “<PolicyLink id={policy_id} isInText />”
      </>
    )
  }
  return started_by?.email ?? (source === 'policy' ? 'a policy' : 'an operator on the command line')
}
