import { Button, Group, Menu, Text } from '@mantine/core'
import { useOpenDialog } from '../act/dialogs.tsx'
import { type AnswerOf, call } from '../api/client.ts'
import { refetchAll, useAnswer } from '../api/queries.ts'
import { useInstallation } from '../components/installation.ts'
import { RelativeTime } from '../components/relative-time.tsx'
import { QueryState } from '../components/states.tsx'
import { useToast } from '../components/toast.tsx'
import { goTo, IssuerMessage, pathHere } from '../signin/issuers.tsx'
import classes from './account.module.css'
import { FormDialog, withPassword } from './form-dialog.tsx'
import { Part } from './part.tsx'

type Login = AnswerOf<'auth.list-logins'>['data'][number]
type Issuer = AnswerOf<'installation.show'>['sign_in_issuers'][number]

/** The identities at issuers that are connected to the account. */
export function Logins() {
  const { data: installation } = useInstallation()
  const logins = useAnswer('auth.list-logins', {})
  const issuers = installation?.sign_in_issuers ?? []
  const hasNone = issuers.length === 0 && (logins.data?.data.length ?? 0) === 0
  if (!installation || hasNone) return null
  return (
    <Part
      title="Single sign-on"
      about="Sign in with your identity at another service."
      actions={issuers.length > 0 && <Connect issuers={issuers} />}
    >
      <IssuerMessage />
      <QueryState query={logins} rows={1}>
        {({ data }) =>
          data.length === 0 ? (
            <Text c="dimmed">Nothing connected</Text>
          ) : (
            <ul className={classes.rows} aria-label="Single sign-on">
              {data.map((login) => (
                <Row key={login.id} login={login} />
              ))}
            </ul>
          )
        }
      </QueryState>
    </Part>
  )
}

function Connect({ issuers }: { issuers: readonly Issuer[] }) {
  const open = useOpenDialog()
  const [only, ...others] = issuers
  const ask = (issuer: Issuer) => open((close) => <Link issuer={issuer} close={close} />)
  if (only && others.length === 0) {
    return (
      <Button variant="default" onClick={() => ask(only)}>
        Connect {only.label}
      </Button>
    )
  }
  return (
    <Menu>
      <Menu.Target>
        <Button variant="default">Connect</Button>
      </Menu.Target>
      <Menu.Dropdown>
        {issuers.map((issuer) => (
          <Menu.Item key={issuer.id} onClick={() => ask(issuer)}>
            {issuer.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

const nameOf = ({ label, issuer }: Login): string => label ?? issuer

function Row({ login }: { login: Login }) {
  const open = useOpenDialog()
  return (
    <li className={classes.row}>
      <div className={classes.what}>
        <Text component="div">{nameOf(login)}</Text>
        <Text size="sm" c="dimmed" component="div">
          {login.subject} · connected <RelativeTime at={login.created_at} />
        </Text>
      </div>
      <Group gap="xs" wrap="nowrap">
        <Button
          size="compact-md"
          variant="default"
          aria-label={`Disconnect ${nameOf(login)}`}
          onClick={() => open((close) => <Unlink login={login} close={close} />)}
        >
          Disconnect
        </Button>
      </Group>
    </li>
  )
}

function Link({ issuer, close }: { issuer: Issuer; close: () => void }) {
  return (
    <FormDialog
      title={`Connect ${issuer.label}`}
      button="Continue"
      submit={async (password) => {
        const { url } = await call('auth.start-linking-login', {
          path: { issuer: issuer.id },
          body: { return_to: pathHere(), ...withPassword(password) },
        })
        goTo(url)
      }}
      close={close}
    >
      <Text>You continue at {issuer.label}, and come back here.</Text>
    </FormDialog>
  )
}

function Unlink({ login, close }: { login: Login; close: () => void }) {
  const toast = useToast()
  return (
    <FormDialog
      title={`Disconnect ${nameOf(login)}`}
      button="Disconnect"
      isDangerous
      submit={async (password) => {
        await call('auth.unlink-login', {
          path: { id: String(login.id) },
          body: withPassword(password),
        })
        await refetchAll()
        toast(`${nameOf(login)} is disconnected.`)
      }}
      close={close}
    >
      <Text>You can no longer sign in with this identity. Your sessions stay.</Text>
    </FormDialog>
  )
}
