import { Anchor, Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { basePath } from '../../base-path.ts'
import { SignInCard } from '../../signin/card.tsx'
import { FormError, fieldError } from '../../signin/form-errors.tsx'
import { PasswordField } from '../../signin/password-field.tsx'
import { useLinkToken } from './use-link-token.ts'

/** The target of a password reset link. */
export function ResetPassword() {
  const token = useLinkToken()
  const [password, setPassword] = useState('')
  const reset = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.reset-password', { body: { token, new_password: password } }),
  })
  if (reset.isSuccess) {
    return (
      <SignInCard title="Password changed">
        <Text role="status">Your password was changed. You are signed out of all sessions.</Text>
        <Anchor href={`${basePath}/`}>Sign in</Anchor>
      </SignInCard>
    )
  }
  return (
    <SignInCard title="New password">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          reset.mutate()
        }}
      >
        <Stack>
          <PasswordField
            label="New password"
            description="At least 12 characters."
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            error={fieldError(reset.error, 'new_password', 'The password')}
            autoComplete="new-password"
            minLength={12}
            maxLength={128}
            required
            autoFocus
          />
          <FormError error={reset.error} fields={['new_password']} />
          <Button type="submit" loading={reset.isPending}>
            Set password
          </Button>
        </Stack>
      </form>
    </SignInCard>
  )
}
