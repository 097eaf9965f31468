import { Anchor, Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { basePath } from '../../base-path.ts'
import { SignInCard } from '../../signin/card.tsx'
import { FormError } from '../../signin/form-errors.tsx'
import { PasswordField } from '../../signin/password-field.tsx'
import { useLinkToken } from './use-link-token.ts'

/** The target of the link that confirms a new account's address. */
export function ConfirmSignUp() {
  const token = useLinkToken()
  const [password, setPassword] = useState('')
  const confirm = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.confirm-sign-up', { body: { token, password } }),
    onSuccess: () => window.location.assign(`${basePath}/`),
  })
  const { error } = confirm
  const isWrong = error instanceof ApiError && error.status === 401
  return (
    <SignInCard title="Create your account">
      <Text>Your address is confirmed. To create the account, enter the password that you chose.</Text>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          confirm.mutate()
        }}
      >
        <Stack>
          <PasswordField
            label="Password"
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            error={isWrong && error.message}
            autoComplete="current-password"
            maxLength={128}
            required
            autoFocus
          />
          {!isWrong && <FormError error={error} />}
          <Button type="submit" loading={confirm.isPending || confirm.isSuccess}>
            Create account
          </Button>
        </Stack>
      </form>
      {error && (
        <Text size="sm">
          <Anchor underline="always" href={`${basePath}/sign-up`}>
            Sign up again
          </Anchor>{' '}
          or{' '}
          <Anchor underline="always" href={`${basePath}/`}>
            sign in
          </Anchor>
          .
        </Text>
      )}
    </SignInCard>
  )
}
