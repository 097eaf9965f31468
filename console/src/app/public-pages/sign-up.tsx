import { Anchor, Button, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { basePath } from '../../base-path.ts'
import { useInstallation } from '../../components/installation.ts'
import { SignInCard } from '../../signin/card.tsx'
import { FormError, fieldError } from '../../signin/form-errors.tsx'
import { type NewAccount, NewAccountFields } from './new-account-fields.tsx'

export function SignUp() {
  const { data: installation } = useInstallation()
  const [email, setEmail] = useState('')
  const [account, setAccount] = useState<NewAccount>({ name: '', password: '' })
  const signUp = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.sign-up', { body: { email: email.trim(), ...account } }),
  })
  if (installation?.sign_up === false) {
    return (
      <SignInCard title="Sign up">
        <Text>People need an invitation to use this service.</Text>
        <ToSignIn />
      </SignInCard>
    )
  }
  if (signUp.isSuccess) {
    return (
      <SignInCard title="Check your mail">
        <Text role="status">
          We sent a message to <b>{email.trim()}</b>. To create your account, open the link in it within 24
          hours.
        </Text>
        <Text size="sm" c="dimmed">
          If it does not arrive, look in your spam folder, or check the address and sign up again.
        </Text>
        <ToSignIn />
      </SignInCard>
    )
  }
  return (
    <SignInCard title="Sign up">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          signUp.mutate()
        }}
      >
        <Stack>
          <NewAccountFields value={account} onChange={setAccount} error={signUp.error}>
            <TextInput
              label="Email"
              type="email"
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
              error={fieldError(signUp.error, 'email', 'The address')}
              autoComplete="username"
              maxLength={254}
              required
            />
          </NewAccountFields>
          <FormError error={signUp.error} fields={['name', 'email', 'password']} />
          <Button type="submit" loading={signUp.isPending}>
            Sign up
          </Button>
          <Terms />
        </Stack>
      </form>
      <Text size="sm">
        Do you have an account? <ToSignIn />
      </Text>
    </SignInCard>
  )
}

const ToSignIn = () => (
  <Anchor underline="always" href={`${basePath}/`}>
    Sign in
  </Anchor>
)

function Terms() {
  const { data } = useInstallation()
  if (!data?.terms_url) return null
  return (
    <Text size="sm" c="dimmed">
      By signing up, you accept the{' '}
      <Anchor href={data.terms_url} underline="always" target="_blank" rel="noreferrer">
        terms of service
      </Anchor>
      {data.privacy_url && (
        <>
          {' '}
          and the{' '}
          <Anchor href={data.privacy_url} underline="always" target="_blank" rel="noreferrer">
            privacy policy
          </Anchor>
        </>
      )}
      .
    </Text>
  )
}
