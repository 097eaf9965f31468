import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { call } from '../../../api/client.ts'
import type { PendingInvitation } from '../../../api/operations.gen.ts'
import { refetchAll, useAnswer } from '../../../api/queries.ts'
import { Failure } from '../../../components/failure.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'

/** The invitations to the user's own address, which need no link. Nothing if there are none. */
export function PendingInvitations() {
  const invitations = useAnswer('customer.invitations.list', { query: { limit: 20 } })
  const pending = invitations.data?.data ?? []
  if (pending.length === 0) return null
  return (
    <Stack gap="sm" mb="lg" component="section" aria-label="Invitations">
      {pending.map((invitation) => (
        <Pending key={invitation.id} invitation={invitation} />
      ))}
    </Stack>
  )
}

function Pending({ invitation: { id, project_name, role, expires_at } }: { invitation: PendingInvitation }) {
  const navigate = useNavigate()
  const accepting = useMutation({
    mutationFn: () => call('customer.invitations.accept', { body: { id } }),
    onSuccess: ({ project_id }) => {
      void navigate({ to: '/projects/$projectId', params: { projectId: String(project_id) } })
      void refetchAll()
    },
  })
  return (
    <Alert
      color="gray"
      title={<span style={{ overflowWrap: 'anywhere' }}>You are invited to {project_name}</span>}
    >
      <Group justify="space-between">
        <Text size="sm" c="var(--mantine-color-text)">
          Role: {role}. The invitation expires <RelativeTime at={expires_at} />.
        </Text>
        <Button size="compact-md" onClick={() => accepting.mutate()} loading={accepting.isPending}>
          Join project
        </Button>
      </Group>
      <Failure of={accepting.error} />
    </Alert>
  )
}
