import { Button, Group, Modal, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { call } from '../api/client.ts'
import { useMe } from '../api/session.ts'
import { FormError, fieldError } from '../signin/form-errors.tsx'
import { PasswordField } from '../signin/password-field.tsx'

/**
 * A change to the account, which the password confirms. What `submit` returns is shown before the dialog closes. A person
 * without a password, who signed in at an issuer just now, confirms with that: the password is then empty.
 */
export function FormDialog<T>({
  title,
  button,
  isDangerous = false,
  needsPassword = false,
  fields = [],
  children,
  submit,
  done,
  close,
}: {
  title: string
  button: string
  isDangerous?: boolean
  /** Whether nothing but the password confirms the change. */
  needsPassword?: boolean
  /** The names of the fields in `children`, which show their own errors. */
  fields?: readonly string[]
  children?: ReactNode | ((error: Error | null) => ReactNode)
  submit: (password: string) => Promise<T>
  /** What follows, instead of the form. Otherwise the dialog closes. */
  done?: (result: T) => ReactNode
  close: () => void
}) {
  const { has_password: hasPassword } = useMe()
  const [password, setPassword] = useState('')
  const change = useMutation({
    gcTime: 0,
    mutationFn: () => submit(password),
    onSuccess: () => {
      if (!done) close()
    },
  })
  const { error } = change
  const isWrong = error instanceof ApiError && /^The password is wrong/.test(error.message)
  return (
    <Modal
      opened
      onClose={close}
      title={title}
      closeButtonProps={{ 'aria-label': 'Close' }}
      transitionProps={{ duration: 0 }}
    >
      {change.isSuccess && done ? (
        done(change.data)
      ) : needsPassword && !hasPassword ? (
        <NoPassword close={close} />
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            change.mutate()
          }}
        >
          <Stack>
            {typeof children === 'function' ? children(error) : children}
            {hasPassword && (
              <PasswordField
                label="Your password"
                value={password}
                onChange={(event) => setPassword(event.currentTarget.value)}
                error={isWrong ? error.message : fieldError(error, 'password', 'The password')}
                autoComplete="current-password"
                maxLength={128}
                required
              />
            )}
            {!isWrong && <FormError error={error} fields={[...fields, 'password']} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button type="submit" loading={change.isPending} color={isDangerous ? 'red.9' : undefined}>
                {button}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  )
}

/** The field of a request: absent without a password. */
export const withPassword = (password: string): { password?: string } => (password === '' ? {} : { password })

function NoPassword({ close }: { close: () => void }) {
  const { email } = useMe()
  const requesting = useMutation({
    gcTime: 0,
    mutationFn: () => call('auth.forgot-password', { body: { email } }),
  })
  return (
    <Stack>
      <Text>
        Your account has no password, which this change needs. Choose one first, with a link to {email}.
      </Text>
      <FormError error={requesting.error} />
      {requesting.isSuccess && <Text role="status">The link was sent.</Text>}
      <Group justify="flex-end">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button
          loading={requesting.isPending}
          disabled={requesting.isSuccess}
          onClick={() => requesting.mutate()}
        >
          Send the link
        </Button>
      </Group>
    </Stack>
  )
}
