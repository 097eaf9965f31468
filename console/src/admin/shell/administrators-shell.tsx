import { Menu } from '@mantine/core'
import { Outlet } from '@tanstack/react-router'
import { lazy } from 'react'
import { useAnswer } from '../../api/queries.ts'
import { type Me, useMe } from '../../api/session.ts'
import { Badge } from '../../components/badge.tsx'
import { Account } from '../../frame/account.tsx'
import { Frame } from '../../frame/frame.tsx'
import { Palette, usePalette } from '../../frame/palette.tsx'
import { TrippedBanner } from '../pages/policies/tripped-banner.tsx'
import { rightsLabels, rightsTexts } from '../pages/users/rights.ts'
import { sectionCounts, sections } from './sections.ts'
import { ToApp } from './to-app.tsx'

const loadPalette = () => import('./administrators-palette.tsx')
const AdministratorsPalette = lazy(loadPalette)

/** The overview page refreshes the same data more often. */
const pollMs = 60_000

/** The frame of the administrators' console. */
export function AdministratorsShell() {
  const me = useMe()
  return me.role === 'admin' ? <ShellOf me={me} /> : <ToApp />
}

function ShellOf({ me }: { me: Me }) {
  const palette = usePalette(loadPalette)
  const { data: overview } = useAnswer('overview.show', {}, { pollMs })
  return (
    <Frame
      navigation={sections}
      counts={overview ? sectionCounts(overview) : {}}
      account={(openShortcuts) => (
        <>
          <RightsBadge me={me} />
          <Account me={me} openShortcuts={openShortcuts}>
            <Menu.Item component="a" href="/app/">
              My projects
            </Menu.Item>
          </Account>
        </>
      )}
      openPalette={palette.open}
    >
      <TrippedBanner tripped={overview?.policies_tripped ?? []} />
      <Outlet />
      <Palette {...palette} dialog={AdministratorsPalette} />
    </Frame>
  )
}

function RightsBadge({ me: { rights } }: { me: Me }) {
  if (rights === null || rights === 'full') return null
  return (
    <span title={`Your rights: ${rightsTexts[rights]}`}>
      <Badge>{rightsLabels[rights]}</Badge>
    </span>
  )
}
