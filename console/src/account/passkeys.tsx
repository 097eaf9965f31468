import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useOpenDialog } from '../act/dialogs.tsx'
import { type AnswerOf, call } from '../api/client.ts'
import { refetchAll, useAnswer } from '../api/queries.ts'
import { RelativeTime } from '../components/relative-time.tsx'
import { QueryState } from '../components/states.tsx'
import { useToast } from '../components/toast.tsx'
import { FormError, fieldError } from '../signin/form-errors.tsx'
import { arePasskeysSupported, createPasskey } from '../signin/web-authn.ts'
import classes from './account.module.css'
import { deviceOf } from './device.ts'
import { FormDialog, withPassword } from './form-dialog.tsx'
import { Part } from './part.tsx'

type Passkey = AnswerOf<'auth.list-passkeys'>['data'][number]

export function Passkeys() {
  const passkeys = useAnswer('auth.list-passkeys', {})
  const open = useOpenDialog()
  return (
    <Part
      title="Passkeys"
      about="Sign in with your phone, your computer or a security key instead of your password. A passkey that checks a PIN, a fingerprint or your face also replaces the authenticator app."
      actions={
        arePasskeysSupported() && (
          <Button variant="default" onClick={() => open((close) => <Add close={close} />)}>
            Add a passkey
          </Button>
        )
      }
    >
      <QueryState query={passkeys} rows={1}>
        {({ data }) =>
          data.length === 0 ? (
            <Text c="dimmed">No passkeys</Text>
          ) : (
            <ul className={classes.rows} aria-label="Passkeys">
              {data.map((passkey) => (
                <Row key={passkey.id} passkey={passkey} />
              ))}
            </ul>
          )
        }
      </QueryState>
    </Part>
  )
}

function Row({ passkey }: { passkey: Passkey }) {
  const open = useOpenDialog()
  const toast = useToast()
  const remove = useMutation({
    mutationFn: () => call('auth.delete-passkey', { path: { id: String(passkey.id) } }),
    onSuccess: () => toast(`The passkey ${passkey.name} is deleted.`),
    onError: ({ message }) => toast(message),
    onSettled: refetchAll,
  })
  return (
    <li className={classes.row}>
      <div className={classes.what}>
        <Text component="div">{passkey.name}</Text>
        <Text size="sm" c="dimmed" component="div">
          added <RelativeTime at={passkey.created_at} />
        </Text>
      </div>
      <Group gap="xs" wrap="nowrap">
        <Button
          size="compact-md"
          variant="default"
          aria-label={`Rename ${passkey.name}`}
          onClick={() => open((close) => <Rename passkey={passkey} close={close} />)}
        >
          Rename
        </Button>
        <Button
          size="compact-md"
          variant="default"
          aria-label={`Delete ${passkey.name}`}
          loading={remove.isPending}
          onClick={() => remove.mutate()}
        >
          Delete
        </Button>
      </Group>
    </li>
  )
}

function Add({ close }: { close: () => void }) {
  const [name, setName] = useState(deviceOf(navigator.userAgent))
  const toast = useToast()
  return (
    <FormDialog
      title="Add a passkey"
      button="Continue"
      fields={['name']}
      submit={async (password) => {
        const { options } = await call('auth.start-adding-passkey', { body: withPassword(password) })
        const credential = await createPasskey(options)
        await call('auth.add-passkey', { body: { name: name.trim(), credential } })
        await refetchAll()
        toast('The passkey is added.')
      }}
      close={close}
    >
      {(error) => (
        <TextInput
          label="Name"
          description="To recognise it in the list."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={fieldError(error, 'name', 'The name')}
          maxLength={100}
          required
          data-autofocus
        />
      )}
    </FormDialog>
  )
}

function Rename({ passkey, close }: { passkey: Passkey; close: () => void }) {
  const [name, setName] = useState(passkey.name)
  const rename = useMutation({
    mutationFn: () =>
      call('auth.rename-passkey', { path: { id: String(passkey.id) }, body: { name: name.trim() } }),
    onSuccess: async () => {
      await refetchAll()
      close()
    },
  })
  return (
    <Modal
      opened
      onClose={close}
      title="Rename the passkey"
      closeButtonProps={{ 'aria-label': 'Close' }}
      transitionProps={{ duration: 0 }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          rename.mutate()
        }}
      >
        <Stack>
          <TextInput
            label="Name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={fieldError(rename.error, 'name', 'The name')}
            maxLength={100}
            required
            data-autofocus
          />
          <FormError error={rename.error} fields={['name']} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" loading={rename.isPending}>
              Rename
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
