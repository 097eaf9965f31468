import { Alert, Anchor, Button, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { Logo } from '../../components/logo.tsx'
import classes from './sign-in.module.css'

/** The target of a password reset link. Needs no session and no role, because customers also use it. */
export const isResetPage = (): boolean => window.location.pathname === '/console/reset-password'

export function ResetPassword() {
  // The fragment of a URL is never sent to the server.
  const [token] = useState(() => window.location.hash.slice(1))
  const [password, setPassword] = useState('')
  const reset = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.reset-password', { body: { token, new_password: password } }),
  })
  return (
    <main className={classes.page}>
      <Paper withBorder p="xl" w="100%" maw={380}>
        <Stack>
          <Logo />
          <Title order={1}>New password</Title>
          {reset.isSuccess ? (
            <>
              <Text>Your password was changed. You are signed out of all sessions.</Text>
              <Anchor href="/console/">Sign in</Anchor>
            </>
          ) : (
            <form
              onSubmit={(event) => {
                event.preventDefault()
                reset.mutate()
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
                {reset.error && (
                  <Alert color="red" role="alert">
                    {reset.error.message}
                  </Alert>
                )}
                <Button type="submit" loading={reset.isPending}>
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
