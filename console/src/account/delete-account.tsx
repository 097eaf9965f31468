import { Button, Text } from '@mantine/core'
import { useOpenDialog } from '../act/dialogs.tsx'
import { call } from '../api/client.ts'
import { useMe } from '../api/session.ts'
import { FormDialog, withPassword } from './form-dialog.tsx'
import { Part } from './part.tsx'

export function DeleteAccount() {
  const open = useOpenDialog()
  // The server rejects it as well.
  if (useMe().role === 'admin') return null
  return (
    <Part
      title="Delete your account"
      about="Ends your memberships and sessions, and deletes your name, address and credentials. Projects that you own must be deleted or transferred first."
      actions={
        <Button variant="outline" color="red" onClick={() => open((close) => <Confirm close={close} />)}>
          Delete account
        </Button>
      }
    />
  )
}

const Confirm = ({ close }: { close: () => void }) => (
  <FormDialog
    title="Delete your account?"
    button="Delete account"
    isDangerous
    submit={async (password) => {
      await call('auth.delete-account', { body: withPassword(password) })
      window.location.reload()
    }}
    close={close}
  >
    <Text>This cannot be undone.</Text>
  </FormDialog>
)
