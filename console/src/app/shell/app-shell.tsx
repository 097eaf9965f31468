import { Alert, Menu } from '@mantine/core'
import { getRouteApi, Outlet, useParams } from '@tanstack/react-router'
import { lazy, useState } from 'react'
import { useMe } from '../../api/session.ts'
import { Account } from '../../frame/account.tsx'
import { Frame } from '../../frame/frame.tsx'
import { Palette, usePalette } from '../../frame/palette.tsx'
import { ProjectSwitcher } from './project-switcher.tsx'
import { sectionsOf } from './sections.ts'

const loadPalette = () => import('./app-palette.tsx')
const AppPalette = lazy(loadPalette)

/** The frame of the customers' app. */
export function AppShell() {
  const me = useMe()
  const palette = usePalette(loadPalette)
  const { projectId } = useParams({ strict: false })
  return (
    <Frame
      navigation={sectionsOf(projectId)}
      place={<ProjectSwitcher projectId={projectId} />}
      account={(openShortcuts) => (
        <Account me={me} openShortcuts={openShortcuts}>
          {me.role === 'admin' && (
            <Menu.Item component="a" href="/console/">
              Administrators’ console
            </Menu.Item>
          )}
        </Account>
      )}
      openPalette={palette.open}
    >
      <FromConsole />
      <Outlet />
      <Palette {...palette} dialog={AppPalette} />
    </Frame>
  )
}

const route = getRouteApi('__root__')

/**
 * Who opens the administrators' console without being an administrator arrives here. Kept in the state and not in the
 * URL: a navigation to close the message would cancel the one to the project.
 */
function FromConsole() {
  const { via } = route.useSearch()
  const [isOpen, setOpen] = useState(via === 'console')
  if (!isOpen) return null
  return (
    <Alert
      color="yellow"
      mb="md"
      role="status"
      withCloseButton
      closeButtonLabel="Close"
      onClose={() => setOpen(false)}
    >
      The console is only for administrators. These are your projects.
    </Alert>
  )
}
