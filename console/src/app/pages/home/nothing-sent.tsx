import { Button, Group, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { CustomerProject } from '../../../api/operations.gen.ts'
import { Can } from '../../../components/can.tsx'
import classes from './nothing-sent.module.css'

/** Instead of figures that are all zero: what to do next. */
export function NothingSent({ project: { id } }: { project: CustomerProject }) {
  return (
    <section className={classes.panel}>
      <Title order={2}>No mail in the last 30 days</Title>
      <Text c="dimmed">
        To send the first message, add a domain, publish its DNS records and create an API key. The guide
        shows each step and checks it.
      </Text>
      <Group gap="sm" mt="xs">
        <Button component={Link} to={`/projects/${id}/start`}>
          Set up sending
        </Button>
        <Can change="customer.messages.send">
          <Button component={Link} to={`/projects/${id}/send`} variant="default">
            Send a test message
          </Button>
        </Can>
      </Group>
    </section>
  )
}
