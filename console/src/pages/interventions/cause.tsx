import type { Intervention } from '../../api/operations.gen.ts'
import { ExactTime } from '../../components/relative-time.tsx'
import { PolicyLink } from '../policies/policy-link.tsx'
import { evidenceOf, evidenceText } from '../policies/sentences.ts'

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

/** Why: for a policy, the figures that it acted on, which its reason also contains. */
export function Cause({ of: intervention }: { of: Intervention }) {
  const evidence = evidenceOf(intervention)
  if (!evidence) return intervention.reason
  return (
    <>
      {evidenceText(evidence)} (<ExactTime at={evidence.at} />)
    </>
  )
}
