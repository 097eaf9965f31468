import { Button, Menu, Tabs } from '@mantine/core'
import { useViewportSize } from '@mantine/hooks'
import { getRouteApi, Outlet, useRouterState } from '@tanstack/react-router'
import { useLayoutEffect, useRef } from 'react'
import type { Answer } from '../../../api/client.ts'
import type { Project } from '../../../api/operations.gen.ts'
import { useOne } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { Can, useCan } from '../../../components/can.tsx'
import { HeadActions } from '../../../components/head-actions.tsx'
import { To } from '../../../components/link.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { useShortcuts } from '../../../components/shortcuts.ts'
import { QueryState } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { startIntervention } from '../interventions/acts.tsx'
import { editProject, lockProject, setBilling } from './acts.tsx'
import classes from './project-page.module.css'
import { tabs } from './tabs.ts'

const route = getRouteApi('/projects/$projectId')

/** The project shown on the page, identified by the id in the URL. */
export function useProject() {
  return useOne('projects.show', { project_id: Number(route.useParams().projectId) })
}

export function ProjectPage() {
  const query = useProject()
  return (
    <QueryState query={query} rows={10}>
      {(loaded) => (
        <>
          <Head loaded={loaded} />
          <ProjectTabs name={loaded.data.name} />
        </>
      )}
    </QueryState>
  )
}

function ProjectTabs({ name }: { name: string }) {
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const pathname = useRouterState({ select: ({ location }) => location.pathname })
  const tab = pathname.split('/')[3] || 'overview'
  const open = (value: string | null) =>
    void navigate({
      to: value === 'overview' ? `/projects/${projectId}` : `/projects/${projectId}/${value}`,
    })
  useShortcuts(
    tabs.map(([value, label], index) => ({
      ...{ keys: String(index + 1), group: 'Project', label, run: () => open(value) },
    })),
  )
  const { width } = useViewportSize()
  const list = useRef<HTMLDivElement>(null)
  // In a narrow window the tabs scroll, so the active tab is scrolled into view.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the active tab is read from the page
  useLayoutEffect(() => {
    const active = list.current?.querySelector('[data-active]')
    if (!list.current || !active) return
    const [outer, inner] = [list.current.getBoundingClientRect(), active.getBoundingClientRect()]
    list.current.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2
  }, [tab, width])
  return (
    <Tabs value={tab} onChange={open} keepMounted={false} mb="lg">
      <Tabs.List ref={list} className={classes.tabs} aria-label={`Sections of ${name}`}>
        {tabs.map(([value, label]) => (
          <Tabs.Tab key={value} value={value}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={tab} pt="lg">
        <Outlet />
      </Tabs.Panel>
    </Tabs>
  )
}

function Head({ loaded }: { loaded: Answer<Project> }) {
  const start = useAct()
  const can = useCan()
  const { id, name, is_locked } = loaded.data
  return (
    <PageHead
      title={name}
      above={
        <>
          <To to="/projects">Projects</To> / {id}
        </>
      }
      beside={is_locked && <Badge tone="bad">locked</Badge>}
    >
      <Can change="projects.edit" field="is_locked">
        <Button
          variant={is_locked ? 'default' : 'outline'}
          color={is_locked ? undefined : 'red'}
          onClick={() => start(lockProject(loaded))}
        >
          {is_locked ? 'Unlock' : 'Lock'}
        </Button>
      </Can>
      <HeadActions
        of="project"
        // The form has no field for the lock.
        edit={can('projects.edit', 'plan_id') && (() => start(editProject(loaded)))}
      >
        {can('interventions.create') && (
          <Menu.Item onClick={() => start(startIntervention(loaded.data))}>Start an intervention</Menu.Item>
        )}
        {can('projects.set-billing') && (
          <Menu.Item onClick={() => start(setBilling(loaded))}>Set billing</Menu.Item>
        )}
      </HeadActions>
    </PageHead>
  )
}
