import { Button, Menu, Tabs } from '@mantine/core'
import { getRouteApi, Outlet, useRouterState } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Project } from '../../api/operations.gen.ts'
import { useOne } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Asked } from '../../components/states.tsx'
import { editProject, lockProject, setBilling } from './acts.tsx'
import classes from './project-page.module.css'
import { tabs } from './tabs.ts'

const route = getRouteApi('/projects/$projectId')

/** The project of the page, by its id in the address. */
export function useProject() {
  return useOne('projects.show', { project_id: Number(route.useParams().projectId) })
}

export function ProjectPage() {
  const query = useProject()
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const inside = useRouterState({ select: ({ location }) => location.pathname })
  const tab = inside.split('/')[3] || 'overview'
  return (
    <Asked query={query} rows={10}>
      {(seen) => (
        <>
          <Head seen={seen} />
          <Tabs
            value={tab}
            onChange={(value) =>
              void navigate({
                to: value === 'overview' ? `/projects/${projectId}` : `/projects/${projectId}/${value}`,
              })
            }
            keepMounted={false}
            mb="lg"
          >
            <Tabs.List className={classes.tabs} aria-label={`Parts of ${seen.data.name}`}>
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
        </>
      )}
    </Asked>
  )
}

function Head({ seen }: { seen: Answer<Project> }) {
  const start = useAct()
  const { id, name, is_locked } = seen.data
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
      <Button
        variant={is_locked ? 'default' : 'outline'}
        color={is_locked ? undefined : 'red'}
        onClick={() => start(lockProject(seen))}
      >
        {is_locked ? 'Unlock' : 'Lock'}
      </Button>
      <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <Button variant="default">Change…</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => start(editProject(seen))}>Edit project</Menu.Item>
          <Menu.Item onClick={() => start(setBilling(seen))}>Set billing</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </PageHead>
  )
}
