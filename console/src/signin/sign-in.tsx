import { Alert, Anchor, Button, Modal, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { call } from '../api/client.ts'
import { queryClient } from '../api/queries.ts'
import { enter, type Me, signIn, signInWithPasskey, submitCode } from '../api/session.ts'
import { useSignInCause } from '../api/sign-in-gate.ts'
import { useInstallation } from '../components/installation.ts'
import { SignInCard } from './card.tsx'
import { forgetIssuerResult, IssuerButtons, IssuerMessage, useIssuerResult } from './issuers.tsx'
import { arePasskeysSupported, getPasskey } from './web-authn.ts'

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
      <SignInCard title="Sign in">
        <IssuerMessage />
        <SignInForm issuers={{ isFresh: false, isOverPage: false }} />
        <SignUpLink />
      </SignInCard>
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
        <SignInForm email={me.email} issuers={{ isFresh: cause === 'second factor', isOverPage: true }} />
      </Stack>
    </Modal>
  )
}

function SignUpLink() {
  const { data: installation } = useInstallation()
  if (!installation?.sign_up) return null
  return (
    <Text size="sm">
      No account yet?{' '}
      <Anchor underline="always" href="/app/sign-up">
        Sign up
      </Anchor>
    </Text>
  )
}

export function SignInForm({
  email: known = '',
  issuers,
  onSignedIn,
}: {
  /** Of the person who probably signs in. */
  email?: string
  /** Undefined on a page that cannot be left, because its address contains a token. */
  issuers?: { isFresh: boolean; isOverPage: boolean }
  onSignedIn?: () => void
}) {
  const [email, setEmail] = useState(known)
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const isBackWithoutCode = useIssuerResult() === 'code'
  const [isCodeNeeded, setIsCodeNeeded] = useState(isBackWithoutCode)
  const done = async () => {
    forgetIssuerResult()
    await enter()
    onSignedIn?.()
  }
  const signingIn = useMutation({
    gcTime: 0,
    mutationFn: async () => {
      if (isCodeNeeded) await submitCode(code.trim())
      else if (await signIn(email.trim(), password)) return setIsCodeNeeded(true)
      await done()
    },
    onError: (error) => {
      setCode('')
      if (isCodeNeeded && isAttemptOver(error)) setIsCodeNeeded(false)
    },
  })
  const passkey = useMutation({
    gcTime: 0,
    mutationFn: async () => {
      const { options } = await call('auth.start-passkey-sign-in')
      const credential = await getPasskey(options)
      if (await signInWithPasskey(credential)) return setIsCodeNeeded(true)
      await done()
    },
  })
  const requestingReset = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.forgot-password', { body: { email: email.trim() } }),
  })
  const error = signingIn.error ?? passkey.error ?? requestingReset.error
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        passkey.reset()
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
              autoFocus={known === ''}
            />
            <PasswordInput
              label="Password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              autoComplete="current-password"
              required
              autoFocus={known !== ''}
            />
          </>
        )}
        {error && (
          <Alert color="red" role="alert">
            {error.message}
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
        {!isCodeNeeded && arePasskeysSupported() && (
          <Button variant="default" loading={passkey.isPending} onClick={() => passkey.mutate()}>
            Use a passkey
          </Button>
        )}
        {!isCodeNeeded && issuers && <IssuerButtons {...issuers} />}
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
