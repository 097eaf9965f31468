import { Button, Menu } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useAnswer } from '../../api/queries.ts'
import { useInstallation } from '../../components/installation.ts'
import classes from './project-switcher.module.css'

/** The project that is shown, and the user's other projects. */
export function ProjectSwitcher({ projectId }: { projectId: string | undefined }) {
  const projects = useAnswer('customer.projects.list', { query: { limit: 20 } })
  const project = useAnswer(
    'customer.projects.show',
    { path: { project_id: Number(projectId) } },
    { isEnabled: projectId !== undefined },
  )
  const installation = useInstallation()
  if (projectId === undefined) return null
  return (
    <Menu position="bottom-start" width={260} transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          className={classes.button ?? ''}
          aria-label={`Project ${project.data?.name ?? ''}. Switch project`}
        >
          <span className={classes.name}>{project.data?.name ?? '…'}</span>
          <span className={classes.chevrons} aria-hidden="true">
            ⌄
          </span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Projects</Menu.Label>
        {(projects.data?.data ?? []).map(({ id, name }) => (
          <Menu.Item
            key={id}
            component={Link}
            to={`/projects/${id}`}
            aria-current={String(id) === projectId ? 'page' : undefined}
            className={classes.project ?? ''}
          >
            {name}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component={Link} to="/projects">
          All projects
        </Menu.Item>
        {installation.data?.customers_create_projects && (
          <Menu.Item component={Link} to="/start">
            New project
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
