import { Stack } from '@mantine/core'
import { PageHead } from '../components/page-head.tsx'
import { AccountActivity } from './account-activity.tsx'
import { DeleteAccount } from './delete-account.tsx'
import { Logins } from './logins.tsx'
import { Passkeys } from './passkeys.tsx'
import { Profile } from './profile.tsx'
import { SecondFactor } from './second-factor.tsx'
import { Sessions } from './sessions.tsx'

/** The signed-in user's own account, in both entrances. */
export function AccountPage() {
  return (
    <>
      <PageHead title="Your account" />
      <Stack gap={36} maw={860}>
        <Profile />
        <SecondFactor />
        <Passkeys />
        <Logins />
        <Sessions />
        <AccountActivity />
        <DeleteAccount />
      </Stack>
    </>
  )
}
