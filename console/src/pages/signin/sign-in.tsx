import { Alert, Button, Modal, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Refusal } from '../../api/answer.ts'
import { call } from '../../api/client.ts'
import { useIsSignInNeeded } from '../../api/gate.ts'
import { queryClient } from '../../api/queries.ts'
import { enter, giveCode, type Me, signIn } from '../../api/session.ts'
import { Mark } from '../../components/mark.tsx'
import classes from './sign-in.module.css'

/**
 * Shown whenever somebody must sign in: as a page for who comes, and over the page, which stays as it is, for whose
 * session has ended in the middle of something.
 */
export function SignInGate() {
  const isNeeded = useIsSignInNeeded()
  if (!isNeeded) return null
  const me = queryClient.getQueryData<Me>(['me'])
  if (!me) {
    return (
      <main className={classes.page}>
        <Paper withBorder p="xl" w="100%" maw={380}>
          <Stack>
            <Mark />
            <Title order={1}>Sign in</Title>
            <SignInForm before={undefined} />
          </Stack>
        </Paper>
      </main>
    )
  }
  return (
    <Modal
      opened
      onClose={() => undefined}
      withCloseButton={false}
      title="Your session has ended"
      zIndex={1000}
    >
      <Stack>
        <Text>Sign in again to go on. Nothing that you have typed is lost.</Text>
        <SignInForm before={me} />
      </Stack>
    </Modal>
  )
}

function SignInForm({ before }: { before: Me | undefined }) {
  const [email, setEmail] = useState(before?.email ?? '')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [isCodeNeeded, setIsCodeNeeded] = useState(false)
  const asking = useMutation({
    gcTime: 0,
    mutationFn: async () => {
      if (isCodeNeeded) await giveCode(code.trim())
      else if (await signIn(email.trim(), password)) return setIsCodeNeeded(true)
      await enter()
    },
    onError: (error) => {
      setCode('')
      if (isCodeNeeded && isAttemptOver(error)) setIsCodeNeeded(false)
    },
  })
  const forgetting = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.forgot-password', { body: { email: email.trim() } }),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        asking.mutate()
      }}
    >
      <Stack>
        {isCodeNeeded ? (
          <TextInput
            key="code"
            label="Code of your authenticator"
            description="Six digits. A backup code will do as well."
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
            autoComplete="one-time-code"
            inputMode="numeric"
            required
            autoFocus
          />
        ) : (
          <>
            <TextInput
              label="Email"
              type="email"
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
              autoComplete="username"
              required
              autoFocus={!before}
            />
            <PasswordInput
              label="Password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              autoComplete="current-password"
              required
              autoFocus={!!before}
            />
          </>
        )}
        {(asking.error ?? forgetting.error) && (
          <Alert color="red" role="alert">
            {(asking.error ?? forgetting.error)?.message}
          </Alert>
        )}
        {forgetting.isSuccess && (
          <Text role="status">
            If an account has this address, a link to set a new password is mailed to it.
          </Text>
        )}
        <Button type="submit" loading={asking.isPending}>
          {isCodeNeeded ? 'Confirm' : 'Sign in'}
        </Button>
        {!isCodeNeeded && (
          <Button
            variant="subtle"
            disabled={email.trim() === ''}
            loading={forgetting.isPending}
            onClick={() => forgetting.mutate()}
          >
            Forgot your password?
          </Button>
        )}
        {isCodeNeeded && (
          <Button variant="subtle" onClick={() => setIsCodeNeeded(false)}>
            Begin anew
          </Button>
        )}
      </Stack>
    </form>
  )
}

/** Five wrong codes, or ten minutes: only the password leads on. A wrong code alone may be tried again. */
const isAttemptOver = (error: Error): boolean =>
  error instanceof Refusal && /^(Too many wrong codes|Sign in with)/.test(error.message)
