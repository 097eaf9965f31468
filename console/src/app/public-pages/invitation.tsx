import { Anchor, Button, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { type AnswerOf, call } from '../../api/client.ts'
import type { Me } from '../../api/session.ts'
import { basePath } from '../../base-path.ts'
import { Loading } from '../../components/states.tsx'
import { SignInCard } from '../../signin/card.tsx'
import { FormError } from '../../signin/form-errors.tsx'
import { SignInForm } from '../../signin/sign-in.tsx'
import { type NewAccount, NewAccountFields } from './new-account-fields.tsx'
import { useLinkToken } from './use-link-token.ts'

type Shown = AnswerOf<'auth.show-invitation'>

/** The target of the link in an invitation: a new person creates an account, and others sign in and accept. */
export function Invitation() {
  const token = useLinkToken()
  const invitation = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => call('auth.show-invitation', { body: { token } }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const me = useQuery({ queryKey: ['invited'], queryFn: findMe, staleTime: Number.POSITIVE_INFINITY })
  const [isKnown, setKnown] = useState(false)
  const error = invitation.error ?? me.error
  if (error) {
    return (
      <SignInCard title="Invitation">
        <FormError error={error} />
        <Anchor href={`${basePath}/`}>Sign in</Anchor>
      </SignInCard>
    )
  }
  if (!invitation.data || me.data === undefined) {
    return (
      <SignInCard title="Invitation">
        <Loading rows={3} />
      </SignInCard>
    )
  }
  const shown = invitation.data
  if (me.data) return <Accept token={token} shown={shown} me={me.data} />
  if (shown.has_account || isKnown) {
    return (
      <About shown={shown}>
        <Text>Sign in to accept.</Text>
        <SignInForm {...(shown.has_account && { email: shown.email })} onSignedIn={() => void me.refetch()} />
      </About>
    )
  }
  return (
    <About shown={shown}>
      <Register token={token} shown={shown} />
      <Button variant="subtle" onClick={() => setKnown(true)}>
        I have an account with another address
      </Button>
    </About>
  )
}

/** Null without a session. */
async function findMe(): Promise<Me | null> {
  try {
    return (await call('auth.show-session')).user
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null
    throw error
  }
}

function About({ shown, children }: { shown: Shown; children: ReactNode }) {
  return (
    <SignInCard title={`Join ${shown.project_name}`}>
      <Text style={{ overflowWrap: 'anywhere' }}>
        {shown.email} is invited to the project <b>{shown.project_name}</b> with the role “{shown.role}”.
      </Text>
      {children}
    </SignInCard>
  )
}

const openProject = (id: number): void => window.location.assign(`${basePath}/projects/${id}`)

function Register({ token, shown }: { token: string; shown: Shown }) {
  const [account, setAccount] = useState<NewAccount>({ name: '', password: '' })
  const register = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.register-invited', { body: { token, ...account } }),
    onSuccess: ({ project_id }) => openProject(project_id),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        register.mutate()
      }}
    >
      <Stack>
        <NewAccountFields value={account} onChange={setAccount} error={register.error}>
          <TextInput label="Email" value={shown.email} readOnly autoComplete="username" />
        </NewAccountFields>
        <FormError error={register.error} fields={['name', 'password']} />
        <Button type="submit" loading={register.isPending || register.isSuccess}>
          Create account and join
        </Button>
      </Stack>
    </form>
  )
}

function Accept({ token, shown, me }: { token: string; shown: Shown; me: Me }) {
  const accept = useMutation({
    mutationFn: () => call('customer.invitations.accept', { body: { token } }),
    onSuccess: ({ project_id }) => openProject(project_id),
  })
  const leave = useMutation({
    mutationFn: () => call('auth.sign-out'),
    onSuccess: () => window.location.reload(),
  })
  return (
    <About shown={shown}>
      <Text>
        You are signed in as <b>{me.email}</b>.
      </Text>
      <FormError error={accept.error ?? leave.error} />
      <Button onClick={() => accept.mutate()} loading={accept.isPending || accept.isSuccess} autoFocus>
        Accept the invitation
      </Button>
      <Button variant="subtle" onClick={() => leave.mutate()} loading={leave.isPending}>
        Use another account
      </Button>
    </About>
  )
}
