import { Group, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Message } from '../../api/operations.gen.ts'
import { Copy } from '../../components/copy.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { To } from '../../components/link.tsx'
import { number } from '../../components/numbers.ts'
import { ExactAndRelativeTime } from '../../components/relative-time.tsx'

/** What is known about a message besides its recipients, with its tags and metadata. */
export function MessageDetails({ message, sentWith }: { message: Message; sentWith: ReactNode }) {
  const { id, project_id, from, tags, metadata, size_bytes, send_at, created_at } = message
  return (
    <Stack gap="xl">
      <section>
        <Title order={3} mb="sm">
          Message
        </Title>
        <DescriptionList
          items={[
            ['From', from],
            ['Accepted', <ExactAndRelativeTime key="accepted" at={created_at} />],
            ['Scheduled', <ExactAndRelativeTime key="send" at={send_at} never="immediately" />],
            ['Size', `${number(size_bytes)} bytes`],
            ['Sent with', sentWith],
            [
              'ID',
              <Group key="id" gap="xs" justify="flex-end">
                <code>{id}</code>
                <Copy text={id} of="message ID" />
              </Group>,
            ],
          ]}
        />
      </section>
      <section>
        <Title order={3} mb="sm">
          Tags
        </Title>
        <Group gap="xs">
          {tags.length === 0 && <Text c="dimmed">None</Text>}
          {tags.map((tag) => (
            <To
              key={tag}
              to="/projects/$projectId/messages"
              params={{ projectId: String(project_id) }}
              search={{ tag }}
            >
              {tag}
            </To>
          ))}
        </Group>
      </section>
      <section>
        <Title order={3} mb="sm">
          Metadata
        </Title>
        {Object.keys(metadata).length === 0 ? (
          <Text c="dimmed">None</Text>
        ) : (
          <DescriptionList items={Object.entries(metadata).map(([name, value]) => [name, String(value)])} />
        )}
      </section>
    </Stack>
  )
}

/** The API key or the user that sent a message. */
export function Sender({
  of: { project_id, api_key_id, user_id },
  keyName,
  email,
}: {
  of: Pick<Message, 'project_id' | 'api_key_id' | 'user_id'>
  /** Undefined while it is loading, and if the key or the user was deleted. */
  keyName: string | undefined
  email: string | undefined
}) {
  if (api_key_id !== null)
    return (
      <To fz="inherit" to="/projects/$projectId/api-keys" params={{ projectId: String(project_id) }}>
        API key {keyName ?? api_key_id}
      </To>
    )
  return user_id === null ? 'no key (forwarded mail)' : `access token of ${email ?? `user ${user_id}`}`
}
