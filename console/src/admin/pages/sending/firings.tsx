import { Stack, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useAnswer } from '../../../api/queries.ts'
import { BarChart } from '../../../components/bar-chart.tsx'
import { useFiringMarks } from '../policies/firing-marks.ts'
import { FiringsOfProject } from '../policies/firings.tsx'

const route = getRouteApi('/projects/$projectId/sending')

/** When policies fired for the project, beside its mail of the last 30 days. */
export function Firings({ projectId }: { projectId: number }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const marks = useFiringMarks(projectId)
  const usage = useAnswer('usage.show', { path: { project_id: projectId } })
  const days = (usage.data?.days ?? []).slice(0, 30).toReversed()
  return (
    <section aria-label="Firings of policies">
      <Title order={3} mb="sm">
        Firings of policies
      </Title>
      <Stack gap="sm">
        {marks.on.length > 0 && days.length > 0 && (
          <BarChart
            title="Recipients per day"
            names={days.map(({ day }) => day)}
            height={120}
            marks={marks}
            series={[
              { label: 'Sent', colour: '--postern-accepted', values: days.map(({ sent }) => sent) },
              { label: 'Bounced', colour: '--postern-bounced', values: days.map(({ bounced }) => bounced) },
            ]}
          />
        )}
        <FiringsOfProject
          projectId={projectId}
          cursor={search.firings}
          setCursor={(firings) => void navigate({ search: { ...search, firings } })}
        />
      </Stack>
    </section>
  )
}
