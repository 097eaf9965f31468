import { Alert, Anchor, Button, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { Mark } from '../../components/mark.tsx'
import classes from './sign-in.module.css'

/** Where a link to set a new password leads. It asks for no session, and for no role: customers come here as well. */
export const isResetPage = (): boolean => window.location.pathname === '/console/reset-password'

export function ResetPassword() {
  // The server never sees what stands behind the #.
  const [token] = useState(() => window.location.hash.slice(1))
  const [password, setPassword] = useState('')
  const setting = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.reset-password', { body: { token, new_password: password } }),
  })
  return (
    <main className={classes.page}>
      <Paper withBorder p="xl" w="100%" maw={380}>
        <Stack>
          <Mark />
          <Title order={1}>New password</Title>
          {setting.isSuccess ? (
            <>
              <Text>Your password is set. You are signed out everywhere.</Text>
              <Anchor href="/console/">Sign in</Anchor>
            </>
          ) : (
            <form
              onSubmit={(event) => {
                event.preventDefault()
                setting.mutate()
              }}
            >
              <Stack>
                <PasswordInput
                  label="New password"
                  description="At least 12 characters."
                  value={password}
                  onChange={(event) => setPassword(event.currentTarget.value)}
                  autoComplete="new-password"
                  minLength={12}
                  required
                  autoFocus
                />
                {setting.error && (
                  <Alert color="red" role="alert">
                    {setting.error.message}
                  </Alert>
                )}
                <Button type="submit" loading={setting.isPending}>
                  Set password
                </Button>
              </Stack>
            </form>
          )}
        </Stack>
      </Paper>
    </main>
  )
}
