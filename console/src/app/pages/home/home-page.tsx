import { Button, SimpleGrid, Stack } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { CustomerProject, Usage } from '../../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { Limits } from '../../../resources/usage/limits.tsx'
import { useProjectId } from '../../components/use-project-id.ts'
import { NoticesInForce } from '../notices/notices.tsx'
import { Figures } from './figures.tsx'
import { NothingSent } from './nothing-sent.tsx'
import { Plan } from './plan.tsx'

/** How the project's mail does, what restricts it, and what is left of its plan. */
export function HomePage() {
  const project = useOne('customer.projects.show', { project_id: useProjectId() })
  return <QueryState query={project}>{({ data }) => <Home key={data.id} project={data} />}</QueryState>
}

const pollMs = 30_000

function Home({ project }: { project: CustomerProject }) {
  const { id, name, is_locked } = project
  const usage = useAnswer('customer.usage.show', { path: { project_id: id } }, { pollMs })
  return (
    <>
      <PageHead title={name} beside={is_locked && <Badge tone="bad">locked</Badge>}>
        <Can change="customer.messages.send">
          <Button component={Link} to={`/projects/${id}/send`} variant="default">
            Send a test
          </Button>
        </Can>
      </PageHead>
      <Stack gap="xl">
        <NoticesInForce projectId={id} />
        <QueryState query={usage} rows={10}>
          {(used) => (
            <>
              {hasMail(used) ? <Figures project={project} usage={used} /> : <NothingSent project={project} />}
              <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
                <Limits usage={used} />
                <Plan project={project} />
              </SimpleGrid>
            </>
          )}
        </QueryState>
      </Stack>
    </>
  )
}

/** In the last 30 days. */
const hasMail = ({ days, month }: Usage): boolean =>
  month.accepted > 0 || days.some(({ accepted, sent }) => accepted > 0 || sent > 0)
