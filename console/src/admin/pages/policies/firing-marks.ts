import { useAnswer } from '../../../api/queries.ts'
import type { ChartMark } from '../../../components/bar-chart.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { exactTime } from '../../../components/zone.ts'
import { usePolicies } from './policies.ts'
import { figuresOf, outcomes } from './sentences.ts'

/** The last firings for a project, as marks on a chart. */
export function useFiringMarks(projectId: number): { label: string; on: ChartMark[] } {
  const firings = useAnswer('firings.list', { query: { project_id: projectId, limit: 200 } })
  const zone = useZone()
  const policies = usePolicies().data?.data ?? []
  const on = (firings.data?.data ?? []).map((firing) => {
    const policy = policies.find(({ id }) => id === firing.policy_id)
    const figures = policy ? `“${policy.name}” fired: ${figuresOf(policy.signal, firing)}` : 'A policy fired'
    return {
      at: firing.at,
      text: `${figures}, ${exactTime(firing.at, zone)}, ${outcomes[firing.outcome].label}`,
    }
  })
  return { label: 'Firings', on }
}
