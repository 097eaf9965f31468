import { Button, Menu, useMantineColorScheme } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type Me, signOut } from '../api/session.ts'
import { type Branding, useBranding } from '../components/installation.ts'
import { useToast } from '../components/toast.tsx'
import { useZoneSetting } from '../components/use-zone.tsx'
import { localZone } from '../components/zone.ts'
import classes from './frame.module.css'

const schemes = { auto: 'Match system', light: 'Light', dark: 'Dark' } as const

/** The signed-in user's menu. */
export function Account({
  me: { name, email },
  openShortcuts,
  children,
}: {
  me: Me
  openShortcuts: () => void
  /** Menu items of the entrance. */
  children?: ReactNode
}) {
  const toast = useToast()
  const links = linksOf(useBranding())
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const [zone, setZone] = useZoneSetting()
  const zones = { local: `Local (${localZone().replaceAll('_', ' ')})`, utc: 'UTC' } as const
  return (
    <Menu position="bottom-end" width={240} transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button variant="subtle" color="gray" className={classes.account ?? ''}>
          {name || email}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{email}</Menu.Label>
        <Menu.Item component={Link} to="/account">
          Your account
        </Menu.Item>
        {children}
        <Menu.Divider />
        <Menu.Label>Theme</Menu.Label>
        <Choices of={schemes} value={colorScheme} onChange={setColorScheme} />
        <Menu.Divider />
        <Menu.Label>Times</Menu.Label>
        <Choices of={zones} value={zone} onChange={setZone} />
        <Menu.Divider />
        <Menu.Item onClick={openShortcuts}>Keyboard shortcuts</Menu.Item>
        <Menu.Item component="a" href="/docs" target="_blank">
          API reference
        </Menu.Item>
        {links.map(([label, href]) => (
          <Menu.Item key={label} component="a" href={href} target="_blank" rel="noreferrer">
            {label}
          </Menu.Item>
        ))}
        <Menu.Item onClick={() => void signOut().catch(({ message }: Error) => toast(message))}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

/** The operator's pages for customers. */
const linksOf = ({ support_url, support_email, terms_url, privacy_url }: Branding) =>
  [
    ['Support', support_url ?? (support_email && `mailto:${support_email}`)],
    ['Terms of service', terms_url],
    ['Privacy policy', privacy_url],
  ].filter((link): link is [string, string] => link[1] !== null)

function Choices<T extends string>({
  of,
  value,
  onChange,
}: {
  of: Record<T, string>
  value: T
  onChange: (value: T) => void
}) {
  return (
    <Menu.RadioGroup value={value} onChange={(chosen) => onChange(chosen as T)}>
      {Object.entries<string>(of).map(([choice, label]) => (
        <Menu.RadioItem key={choice} value={choice}>
          {label}
        </Menu.RadioItem>
      ))}
    </Menu.RadioGroup>
  )
}
