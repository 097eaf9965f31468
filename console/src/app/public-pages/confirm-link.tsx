import { Anchor, Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../../api/client.ts'
import { basePath } from '../../base-path.ts'
import { SignInCard } from '../../signin/card.tsx'
import { FormError } from '../../signin/form-errors.tsx'
import { useLinkToken } from './use-link-token.ts'

/**
 * The target of a link that changes something. A person confirms with a button, because programs that scan mail open links as
 * well.
 */
function ConfirmLink({
  operation,
  title,
  text,
  button,
  done,
}: {
  operation: 'auth.confirm-email' | 'auth.undo-email'
  title: string
  text: string
  button: string
  done: ReactNode
}) {
  const token = useLinkToken()
  const confirm = useMutation({ gcTime: 0, mutationFn: () => call(operation, { body: { token } }) })
  return (
    <SignInCard title={title}>
      {confirm.isSuccess ? (
        <>
          <Text role="status">{done}</Text>
          <Anchor href={`${basePath}/`}>Continue</Anchor>
        </>
      ) : (
        <>
          <Text>{text}</Text>
          <FormError error={confirm.error} />
          <Button onClick={() => confirm.mutate()} loading={confirm.isPending} autoFocus>
            {button}
          </Button>
        </>
      )}
    </SignInCard>
  )
}

export const ConfirmEmail = () => (
  <ConfirmLink
    operation="auth.confirm-email"
    title="New email address"
    text="From now on, you sign in with this address, and receive all mail about your account there."
    button="Confirm the address"
    done="Your email address was changed. A link to undo this was sent to the old address."
  />
)

export const UndoEmail = () => (
  <ConfirmLink
    operation="auth.undo-email"
    title="Undo the change"
    text="Your account gets its old email address again, and you are signed out everywhere."
    button="Restore the old address"
    done="Your old address is restored. Sign in, and change your password if you did not change the address yourself: another person knows it."
  />
)
