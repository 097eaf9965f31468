import { useMantineColorScheme } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { signOut } from '../api/session.ts'
import { activeShortcuts } from '../components/shortcuts.ts'
import { useToast } from '../components/toast.tsx'
import { useZoneSetting } from '../components/use-zone.tsx'
import { type Choice, command } from './palette-choice.ts'

/** The commands of the palette that every page has. */
export function useFrameCommands(): Choice[] {
  const navigate = useNavigate()
  const toast = useToast()
  const { setColorScheme } = useMantineColorScheme()
  const [zone, setZone] = useZoneSetting()
  return [
    command('account', 'Commands', 'Your account', () => void navigate({ to: '/account' })),
    command('light', 'Commands', 'Light theme', () => setColorScheme('light')),
    command('dark', 'Commands', 'Dark theme', () => setColorScheme('dark')),
    command('auto', 'Commands', 'Match system theme', () => setColorScheme('auto')),
    zone === 'utc'
      ? command('local', 'Commands', 'Show times in local time', () => setZone('local'))
      : command('utc', 'Commands', 'Show times in UTC', () => setZone('utc')),
    command('shortcuts', 'Commands', 'Keyboard shortcuts', () =>
      activeShortcuts()
        .find(({ keys }) => keys === '?')
        ?.run(),
    ),
    command(
      'sign-out',
      'Commands',
      'Sign out',
      () => void signOut().catch(({ message }: Error) => toast(message)),
    ),
  ]
}
