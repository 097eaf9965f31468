import { Alert, Button, Modal, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import { enter, type Me, signIn, submitCode } from '../../api/session.ts'
import { useSignInCause } from '../../api/sign-in-gate.ts'
import { Logo } from '../../components/logo.tsx'
import classes from './sign-in.module.css'

/**
 * Shown when the user has to sign in: as a page, or over the current page if the session ended while the user was
 * working.
 */
export function SignInGate() {
  const cause = useSignInCause()
  if (!cause) return null
  const me = queryClient.getQueryData<Me>(['me'])
  if (!me) {
    return (
      <main className={classes.page}>
        <Paper withBorder p="xl" w="100%" maw={380}>
          <Stack>
            <Logo />
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
      title={cause === 'second factor' ? 'Sign in again' : 'Your session has ended'}
      zIndex={1000}
    >
      <Stack>
        <Text>
          {cause === 'second factor'
            ? 'This change requires two-factor authentication within the last 10 minutes.'
            : 'Sign in again to continue.'}{' '}
          Nothing you have typed is lost.
        </Text>
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
  const signingIn = useMutation({
    gcTime: 0,
    mutationFn: async () => {
      if (isCodeNeeded) await submitCode(code.trim())
      else if (await signIn(email.trim(), password)) return setIsCodeNeeded(true)
      await enter()
    },
    onError: (error) => {
      setCode('')
      if (isCodeNeeded && isAttemptOver(error)) setIsCodeNeeded(false)
    },
  })
  const requestingReset = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.forgot-password', { body: { email: email.trim() } }),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        signingIn.mutate()
      }}
    >
      <Stack>
        {isCodeNeeded ? (
          <TextInput
            key="code"
            label="Authentication code"
            description="Six digits from your authenticator app, or a backup code."
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
        {(signingIn.error ?? requestingReset.error) && (
          <Alert color="red" role="alert">
            {(signingIn.error ?? requestingReset.error)?.message}
          </Alert>
        )}
        {requestingReset.isSuccess && (
          <Text role="status">
            If an account with this address exists, a password reset link was sent to it.
          </Text>
        )}
        <Button type="submit" loading={signingIn.isPending}>
          {isCodeNeeded ? 'Confirm' : 'Sign in'}
        </Button>
        {!isCodeNeeded && (
          <Button
            variant="subtle"
            disabled={email.trim() === ''}
            loading={requestingReset.isPending}
            onClick={() => requestingReset.mutate()}
          >
            Forgot your password?
          </Button>
        )}
        {isCodeNeeded && (
          <Button variant="subtle" onClick={() => setIsCodeNeeded(false)}>
            Start over
          </Button>
        )}
      </Stack>
    </form>
  )
}

/** After five wrong codes or ten minutes, the password is required again. Until then, the user can try another code. */
const isAttemptOver = (error: Error): boolean =>
  error instanceof ApiError && /^(Too many wrong codes|Sign in with)/.test(error.message)
