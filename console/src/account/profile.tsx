import { Button, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useOpenDialog } from '../act/dialogs.tsx'
import { call } from '../api/client.ts'
import { useMe } from '../api/session.ts'
import { discardToken } from '../api/token.ts'
import { DescriptionList } from '../components/description-list.tsx'
import { useToast } from '../components/toast.tsx'
import { fieldError } from '../signin/form-errors.tsx'
import { PasswordField } from '../signin/password-field.tsx'
import { FormDialog, withPassword } from './form-dialog.tsx'
import { Part } from './part.tsx'

export function Profile() {
  const { name, email } = useMe()
  const open = useOpenDialog()
  return (
    <Part
      title="Profile"
      actions={
        <>
          <Button variant="default" onClick={() => open((close) => <ChangeEmail close={close} />)}>
            Change email
          </Button>
          <Button variant="default" onClick={() => open((close) => <ChangePassword close={close} />)}>
            Change password
          </Button>
        </>
      }
    >
      <DescriptionList
        items={[
          ['Name', name],
          ['Email', email],
        ]}
      />
    </Part>
  )
}

function ChangeEmail({ close }: { close: () => void }) {
  const [email, setEmail] = useState('')
  return (
    <FormDialog
      title="Change your email address"
      button="Send the link"
      fields={['email']}
      submit={(password) =>
        call('auth.change-email', { body: { email: email.trim(), ...withPassword(password) } })
      }
      close={close}
      done={() => (
        <Stack>
          <Text role="status">
            We sent a link to <b>{email.trim()}</b>. Your address changes when you open it, within 24 hours.
          </Text>
          <Button onClick={close} data-autofocus>
            Done
          </Button>
        </Stack>
      )}
    >
      {(error) => (
        <TextInput
          label="New email address"
          type="email"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={fieldError(error, 'email', 'The address')}
          autoComplete="email"
          maxLength={254}
          required
          data-autofocus
        />
      )}
    </FormDialog>
  )
}

function ChangePassword({ close }: { close: () => void }) {
  const [password, setPassword] = useState('')
  const toast = useToast()
  return (
    <FormDialog
      title="Change your password"
      button="Change password"
      needsPassword
      fields={['new_password']}
      submit={async (current_password) => {
        await call('auth.change-password', { body: { current_password, new_password: password } })
        // The session is a new one.
        discardToken()
        toast('Your password is changed. Your other sessions have ended.')
      }}
      close={close}
    >
      {(error) => (
        <PasswordField
          label="New password"
          description="At least 12 characters. Your other sessions end."
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          error={fieldError(error, 'new_password', 'The password')}
          autoComplete="new-password"
          minLength={12}
          maxLength={128}
          required
          data-autofocus
        />
      )}
    </FormDialog>
  )
}
