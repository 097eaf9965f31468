import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { useOpenDialog } from '../act/dialogs.tsx'
import { call } from '../api/client.ts'
import { queryClient, refetchAll } from '../api/queries.ts'
import { useMe } from '../api/session.ts'
import { discardToken } from '../api/token.ts'
import { Badge } from '../components/badge.tsx'
import { Copy } from '../components/copy.tsx'
import { useToast } from '../components/toast.tsx'
import { FormError } from '../signin/form-errors.tsx'
import classes from './account.module.css'
import { FormDialog } from './form-dialog.tsx'
import { Part } from './part.tsx'

const QrCode = lazy(() => import('./qr-code.tsx').then((module) => ({ default: module.QrCode })))

/** The session and its user have changed. */
async function reload(): Promise<void> {
  discardToken()
  const { user } = await call('auth.show-session')
  queryClient.setQueryData(['me'], user)
  await refetchAll()
}

export function SecondFactor() {
  const { second_factor_enabled: isOn, role } = useMe()
  const open = useOpenDialog()
  return (
    <Part
      title="Authenticator app"
      beside={isOn ? <Badge tone="good">on</Badge> : <Badge tone="warn">off</Badge>}
      about="Asks for a code of an app on your phone when you sign in with your password."
      actions={
        isOn ? (
          <>
            <Button variant="default" onClick={() => open((close) => <Replace close={close} />)}>
              Replace
            </Button>
            <Button variant="default" onClick={() => open((close) => <NewBackupCodes close={close} />)}>
              New backup codes
            </Button>
            {role !== 'admin' && (
              <Button variant="default" onClick={() => open((close) => <TurnOff close={close} />)}>
                Remove
              </Button>
            )}
          </>
        ) : (
          <Button onClick={() => open((close) => <SetUp close={close} />)}>Set up</Button>
        )
      }
    />
  )
}

function SetUp({ close }: { close: () => void }) {
  const toast = useToast()
  return (
    <FormDialog
      title="Set up an authenticator app"
      button="Continue"
      needsPassword
      submit={(password) => call('auth.enroll-totp', { body: { password } })}
      close={close}
      done={({ totp_uri, backup_codes }) => (
        <EnterCode
          uri={totp_uri}
          codes={backup_codes}
          verify={(code) => call('auth.verify-totp', { body: { code } })}
          onDone={async () => {
            await reload()
            toast('The authenticator app is set up.')
            close()
          }}
        />
      )}
    >
      <Text>You need an app such as Aegis, 1Password or Google Authenticator.</Text>
    </FormDialog>
  )
}

function Replace({ close }: { close: () => void }) {
  const toast = useToast()
  return (
    <FormDialog
      title="Replace the authenticator app"
      button="Continue"
      needsPassword
      submit={(password) => call('auth.start-totp-replacement', { body: { password } })}
      close={close}
      done={({ totp_uri }) => (
        <EnterCode
          uri={totp_uri}
          verify={(code) => call('auth.replace-totp', { body: { code } })}
          onDone={async () => {
            toast('The authenticator app is replaced.')
            await refetchAll()
            close()
          }}
        />
      )}
    >
      <Text>Your current app stays valid until you enter the first code of the new one.</Text>
    </FormDialog>
  )
}

function EnterCode({
  uri,
  codes,
  verify,
  onDone,
}: {
  uri: string
  codes?: readonly string[]
  verify: (code: string) => Promise<unknown>
  onDone: () => Promise<void>
}) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    gcTime: 0,
    mutationFn: async () => {
      await verify(code.trim())
      await onDone()
    },
    onError: () => setCode(''),
  })
  const secret = new URL(uri).searchParams.get('secret') ?? ''
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        confirm.mutate()
      }}
    >
      <Stack>
        <Text>Scan this code with the app, or enter the key by hand.</Text>
        <Suspense fallback={<div className={classes.qr} />}>
          <div className={classes.qr}>
            <QrCode text={uri} label="QR code of the authenticator" />
          </div>
        </Suspense>
        <Group gap="xs" wrap="nowrap">
          <code className={classes.key}>{secret}</code>
          <Copy text={secret} label="Copy key" />
        </Group>
        {codes && <BackupCodes codes={codes} />}
        <TextInput
          label="Authentication code"
          description="The six digits that the app shows now."
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
          autoComplete="one-time-code"
          inputMode="numeric"
          pattern="[0-9]{6}"
          required
          data-autofocus
        />
        <FormError error={confirm.error} />
        <Button type="submit" loading={confirm.isPending}>
          Confirm
        </Button>
      </Stack>
    </form>
  )
}

function BackupCodes({ codes }: { codes: readonly string[] }) {
  return (
    <>
      <Alert color="yellow" title="Keep these backup codes">
        Each one replaces the app once. They are shown only now.
      </Alert>
      <ul className={classes.codes} aria-label="Backup codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <Group>
        <Copy text={codes.join('\n')} label="Copy backup codes" />
      </Group>
    </>
  )
}

function NewBackupCodes({ close }: { close: () => void }) {
  return (
    <FormDialog
      title="New backup codes"
      button="Create new codes"
      needsPassword
      submit={(password) => call('auth.renew-backup-codes', { body: { password } })}
      close={close}
      done={({ backup_codes }) => (
        <Stack>
          <BackupCodes codes={backup_codes} />
          <Button onClick={close} data-autofocus>
            Done
          </Button>
        </Stack>
      )}
    >
      <Text>Your current backup codes become invalid.</Text>
    </FormDialog>
  )
}

function TurnOff({ close }: { close: () => void }) {
  const toast = useToast()
  return (
    <FormDialog
      title="Remove the authenticator app"
      button="Remove"
      needsPassword
      isDangerous
      submit={async (password) => {
        await call('auth.disable-totp', { body: { password } })
        await reload()
        toast('The authenticator app is removed.')
      }}
      close={close}
    >
      <Text>Only your password then protects your account. Your backup codes become invalid.</Text>
    </FormDialog>
  )
}
