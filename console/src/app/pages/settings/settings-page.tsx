import { Anchor, Button, Group, Stack, Text, Title } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { Answer } from '../../../api/client.ts'
import type { CustomerProject } from '../../../api/operations.gen.ts'
import { useOne } from '../../../api/queries.ts'
import { useMe } from '../../../api/session.ts'
import { Can } from '../../../components/can.tsx'
import { Copy } from '../../../components/copy.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { useBranding } from '../../../components/installation.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactAndRelativeTime } from '../../../components/relative-time.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useMembers } from '../../components/use-members.ts'
import { useProjectId } from '../../components/use-project-id.ts'
import { deleteProject, renameProject } from '../projects/acts.tsx'

export function SettingsPage() {
  const project = useOne('customer.projects.show', { project_id: useProjectId() })
  return (
    <>
      <PageHead title="Settings" />
      <QueryState query={project}>
        {(loaded) => (
          <Stack gap="xl" maw={640}>
            <General loaded={loaded} />
            <ForSupport project={loaded.data} />
            <Deletion loaded={loaded} />
          </Stack>
        )}
      </QueryState>
    </>
  )
}

function General({ loaded }: { loaded: Answer<CustomerProject> }) {
  const start = useAct()
  const { id, name, role, user_id, plan, created_at } = loaded.data
  const owner = useMembers(id).find((member) => member.user_id === user_id)
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>Project</Title>
        <Can change="customer.projects.edit">
          <Button variant="default" size="compact-md" onClick={() => start(renameProject(loaded))}>
            Rename
          </Button>
        </Can>
      </Group>
      <DescriptionList
        items={[
          ['Name', name],
          ['Owner', owner?.email ?? `user ${user_id}`],
          ['Your role', role],
          ['Plan', plan.name],
          ['Created', <ExactAndRelativeTime key="created" at={created_at} />],
        ]}
      />
    </section>
  )
}

/** What support asks for first. */
function ForSupport({ project: { id } }: { project: CustomerProject }) {
  const me = useMe()
  const { support_email, support_url } = useBranding()
  return (
    <section>
      <Title order={2} mb="sm">
        For support
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        Include these ids when you ask for help.
        {support_email !== null && (
          <>
            {' '}
            Write to{' '}
            <Anchor fz="inherit" underline="always" href={`mailto:${support_email}`}>
              {support_email}
            </Anchor>
            .
          </>
        )}
        {support_url !== null && (
          <>
            {' '}
            <Anchor fz="inherit" underline="always" href={support_url} target="_blank" rel="noreferrer">
              Support pages
            </Anchor>
          </>
        )}
      </Text>
      <DescriptionList
        items={[
          ['Project ID', <Id key="project" id={id} of="project ID" />],
          ['Your user ID', <Id key="user" id={me.id} of="user ID" />],
        ]}
      />
      <Text size="sm" c="dimmed" mt="xs">
        Only the operator can transfer a project to another owner.
      </Text>
    </section>
  )
}

const Id = ({ id, of }: { id: number; of: string }) => (
  <Group gap="xs" justify="flex-end">
    <code>{id}</code>
    <Copy text={String(id)} of={of} />
  </Group>
)

function Deletion({ loaded }: { loaded: Answer<CustomerProject> }) {
  const start = useAct()
  const navigate = useNavigate()
  return (
    <Can change="customer.projects.delete">
      <section>
        <Title order={2} mb="xs">
          Delete the project
        </Title>
        <Text size="sm" c="dimmed" mb="sm">
          The project must be empty: delete its domains, endpoints, routes and API keys first.
        </Text>
        <Button
          variant="outline"
          color="red"
          onClick={() => start({ ...deleteProject(loaded), done: () => void navigate({ to: '/projects' }) })}
        >
          Delete project
        </Button>
      </section>
    </Can>
  )
}
