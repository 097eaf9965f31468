import { Button, Paper, Stack, Text, Title } from '@mantine/core'
import { type Me, signOut } from '../api/session.ts'
import { Logo } from '../components/logo.tsx'
import { useToast } from '../components/toast.tsx'
import classes from './shell.module.css'

/** Shown to a signed-in user who is not an administrator. */
export function AdministratorsOnly({ me }: { me: Me }) {
  const toast = useToast()
  return (
    <main className={classes.notice}>
      <Paper withBorder p="xl" w="100%" maw={420}>
        <Stack>
          <Logo />
          <Title order={1}>Administrators only</Title>
          <Text>
            This console is for administrators. You are signed in as {me.email}, which is not an administrator
            account.
          </Text>
          <Text c="dimmed">
            Projects are managed through the <a href="/docs">API</a>.
          </Text>
          <Button onClick={() => void signOut().catch(({ message }: Error) => toast(message))}>
            Sign out
          </Button>
        </Stack>
      </Paper>
    </main>
  )
}
