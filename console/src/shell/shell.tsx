import {
  AppShell,
  Burger,
  Button,
  Group,
  Kbd,
  Menu,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, Outlet } from '@tanstack/react-router'
import { type Me, signOut, useMe } from '../api/session.ts'
import { Badge } from '../components/badge.tsx'
import { Logo } from '../components/logo.tsx'
import { useToast } from '../components/toast.tsx'
import { useTripped } from '../pages/policies/policies.ts'
import { TrippedBanner } from '../pages/policies/tripped-banner.tsx'
import { rightsLabels, rightsTexts } from '../pages/users/rights.ts'
import { AdministratorsOnly } from './administrators-only.tsx'
import { Palette, usePalette } from './palette.tsx'
import classes from './shell.module.css'

const sections = [
  ['/', 'Overview'],
  ['/projects', 'Projects'],
  ['/messages', 'Messages'],
  ['/trace', 'Trace'],
  ['/audit', 'Audit'],
  ['/policies', 'Policies'],
  ['/suppressions', 'Suppressions'],
  ['/plans', 'Plans'],
  ['/users', 'Users'],
] as const

export function Shell() {
  const me = useMe()
  return me.role === 'admin' ? <AdminShell me={me} /> : <AdministratorsOnly me={me} />
}

function AdminShell({ me }: { me: Me }) {
  const [isOpen, { toggle, close }] = useDisclosure()
  const palette = usePalette()
  const tripped = useTripped().length
  const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent)
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'md', sm: 'xl' }}
      classNames={{ main: classes.main ?? '', navbar: classes.navbar ?? '' }}
    >
      <a href="#content" className={classes.skip}>
        Skip to content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <span className={classes.logo}>
              <Logo />
            </span>
          </Group>
          <UnstyledButton className={classes.search} onClick={palette.open}>
            <span>Jump to…</span>
            <Kbd size="xs" className={classes.shortcut ?? ''}>
              {isApple ? '⌘K' : 'Ctrl K'}
            </Kbd>
          </UnstyledButton>
          <Group gap={0} wrap="nowrap">
            {me.rights !== null && me.rights !== 'full' && (
              <span title={`Your rights: ${rightsTexts[me.rights]}`}>
                <Badge>{rightsLabels[me.rights]}</Badge>
              </span>
            )}
            <Account name={me.name || me.email} email={me.email} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Main">
        {sections.map(([to, label]) => (
          <Link
            key={to}
            to={to}
            activeOptions={{ exact: to === '/' }}
            className={classes.section ?? ''}
            activeProps={{ 'data-active': true, 'aria-current': 'page' }}
            onClick={close}
          >
            {label}
            {to === '/policies' && tripped > 0 && (
              <span title="Stopped by the breaker">
                <Badge tone="bad">{tripped}</Badge>
              </span>
            )}
          </Link>
        ))}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <TrippedBanner />
        <Outlet />
      </AppShell.Main>
      <Palette {...palette} />
    </AppShell>
  )
}

function Account({ name, email }: { name: string; email: string }) {
  const toast = useToast()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const schemes = { auto: 'Match system', light: 'Light', dark: 'Dark' } as const
  return (
    <Menu position="bottom-end" width={220} transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button variant="subtle" color="gray" className={classes.account ?? ''}>
          {name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{email}</Menu.Label>
        {Object.entries(schemes).map(([scheme, label]) => (
          <Menu.Item
            key={scheme}
            onClick={() => setColorScheme(scheme as keyof typeof schemes)}
            rightSection={colorScheme === scheme ? '✓' : undefined}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component="a" href="/docs" target="_blank">
          API reference
        </Menu.Item>
        <Menu.Item onClick={() => void signOut().catch(({ message }: Error) => toast(message))}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
