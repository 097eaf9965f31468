import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useAnswer } from '../api/queries.ts'
import { ExactTime } from '../components/relative-time.tsx'
import { QueryState } from '../components/states.tsx'
import classes from './account.module.css'
import { deviceOf } from './device.ts'
import { Part } from './part.tsx'

type Entry = AnswerOf<'auth.list-activity'>['data'][number]

const first = 10
const most = 100

export function AccountActivity() {
  const [limit, setLimit] = useState(first)
  const activity = useAnswer('auth.list-activity', { query: { limit } })
  return (
    <Part title="Activity" about="Sign-ins and changes to your account.">
      <QueryState query={activity} rows={6}>
        {({ data, next_cursor }) => (
          <>
            <ul className={classes.rows} aria-label="Activity">
              {data.map((entry) => (
                <li key={entry.id} className={classes.row}>
                  <div className={classes.what}>
                    <Text component="div">{sentenceOf(entry)}</Text>
                    <Text size="sm" c="dimmed" component="div">
                      {entry.actor.ip ?? 'Unknown address'} · {deviceOf(entry.actor.user_agent)}
                    </Text>
                  </div>
                  <Text size="sm" c="dimmed" ta="right" component="div">
                    <ExactTime at={entry.at} />
                  </Text>
                </li>
              ))}
            </ul>
            {next_cursor !== null && limit < most && (
              <Group mt="sm">
                <Button variant="default" onClick={() => setLimit(most)}>
                  Show more
                </Button>
              </Group>
            )}
          </>
        )}
      </QueryState>
    </Part>
  )
}

const sentences: Record<string, string> = {
  'auth.sign-out': 'Signed out',
  'auth.end-session': 'Ended a session',
  'auth.end-other-sessions': 'Ended all other sessions',
  'auth.confirm-sign-up': 'Created the account',
  'auth.register-invited': 'Created the account with an invitation',
  'auth.change-password': 'Changed the password',
  'auth.reset-password': 'Reset the password with a link',
  'auth.change-email': 'Requested another email address',
  'auth.confirm-email': 'Changed the email address',
  'auth.undo-email': 'Restored the old email address',
  'auth.enroll-totp': 'Started to set up an authenticator app',
  'auth.confirm-totp': 'Set up an authenticator app',
  'auth.replace-totp': 'Replaced the authenticator app',
  'auth.disable-totp': 'Removed the authenticator app',
  'auth.renew-backup-codes': 'Created new backup codes',
  'auth.add-passkey': 'Added a passkey',
  'auth.rename-passkey': 'Renamed a passkey',
  'auth.delete-passkey': 'Deleted a passkey',
  'auth.sign-up-at-issuer': 'Created the account with single sign-on',
  'auth.link-login': 'Connected an identity for single sign-on',
  'auth.unlink-login': 'Disconnected an identity',
  'auth.delete-account': 'Deleting the account',
  'invitations.accept': 'Joined a project',
  'users.edit': 'An operator changed the user',
  'users.reset': 'An operator reset the credentials',
  'users.reset-second-factor': 'An operator removed the second factor and the passkeys',
  'users.link': 'An operator connected an identity for single sign-on',
  'users.unlink': 'An operator disconnected an identity',
}

const methods: Record<string, string> = {
  password: 'a password',
  totp: 'a code of the authenticator app',
  backup_code: 'a backup code',
  passkey: 'a passkey',
  issuer: 'single sign-on',
}

function sentenceOf({ operation, after }: Entry): string {
  const { outcome, method, second_factor_required } = (after ?? {}) as Record<string, unknown>
  const by = methods[String(method)] ?? 'another method'
  if (outcome === 'failure') {
    return operation === 'auth.sign-in'
      ? `Failed to sign in with ${by}`
      : `${sentences[operation] ?? operation}: failed, wrong password`
  }
  if (operation === 'auth.sign-in') {
    return second_factor_required === true ? `Passed the first step with ${by}` : `Signed in with ${by}`
  }
  return sentences[operation] ?? operation
}
