import { Button, Group, Text, Title } from '@mantine/core'
import type { Project } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { To } from '../../../components/link.tsx'
import { upTo } from '../../../components/numbers.ts'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { discardQueue, holdQueue, releaseQueue } from './acts.tsx'
import { Discards } from './discards.tsx'

const pollMs = 10_000

export const useQueue = (projectId: number) =>
  useAnswer('queue.show', { path: { project_id: projectId } }, { pollMs })

export function Queue({ project, isOverview = false }: { project: Project; isOverview?: boolean }) {
  const start = useAct()
  const query = useQueue(project.id)
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={isOverview ? 2 : 3}>Queue</Title>
        {query.data && (
          <Group gap="xs">
            <Can change={query.data.is_held ? 'queue.release' : 'queue.hold'}>
              <Button
                size="compact-sm"
                variant="default"
                onClick={() =>
                  query.data.is_held ? start(releaseQueue(project)) : start(holdQueue(project))
                }
              >
                {query.data.is_held ? 'Release' : 'Hold'}
              </Button>
            </Can>
            <Can change="queue.discard">
              <Button size="compact-sm" variant="default" onClick={() => start(discardQueue(project))}>
                Discard
              </Button>
            </Can>
          </Group>
        )}
      </Group>
      <QueryState query={query}>
        {({ is_held, held_at, waiting, scheduled, leaving, awaiting }) => (
          <>
            {is_held && (
              <Text size="sm" mb="xs">
                <Badge tone="warn">held</Badge> <RelativeTime at={held_at} />
              </Text>
            )}
            <DescriptionList
              items={[
                ['Waiting', upTo(waiting)],
                ['Scheduled', upTo(scheduled)],
                ['Sending', upTo(leaving)],
                ['Awaiting delivery report', upTo(awaiting)],
              ]}
            />
          </>
        )}
      </QueryState>
      {isOverview && (
        <Text size="sm" mt="xs">
          <To fz="inherit" to="/projects/$projectId/sending" params={{ projectId: String(project.id) }}>
            Why is mail slow or refused?
          </To>
        </Text>
      )}
      <Discards projectId={project.id} />
    </section>
  )
}
