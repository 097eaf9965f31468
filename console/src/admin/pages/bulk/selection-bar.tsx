import { Button, Group, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { Project } from '../../../api/operations.gen.ts'
import { counted } from '../../../components/numbers.ts'
import { useAct } from '../../act/use-act.tsx'
import { changePlanOfAll, interveneInAll, lockAll } from './acts.tsx'
import classes from './selection-bar.module.css'
import type { ProjectSelection } from './use-selection.ts'

/** What can be done with the selected projects. */
export function SelectionBar({ selection, shown }: { selection: ProjectSelection; shown: Project[] }) {
  const start = useAct()
  const navigate = useNavigate()
  if (!selection.projects) return null
  const { projects, isAll } = selection
  const open = ({ id }: { id: string }) => {
    selection.clear()
    void navigate({ to: '/bulk/$id', params: { id } })
  }
  return (
    <section className={classes.bar} aria-label="Selected projects">
      <Group gap="sm" justify="space-between">
        <Group gap="sm">
          <Text size="sm" fw={550} role="status">
            {isAll ? 'All projects that match' : `${counted(projects.ids?.length ?? 0, 'project')} selected`}
          </Text>
          {!isAll && (
            <>
              <Button size="compact-sm" variant="subtle" onClick={() => selection.select(shown)}>
                Select page
              </Button>
              <Button size="compact-sm" variant="subtle" onClick={selection.selectAll}>
                Select all that match
              </Button>
            </>
          )}
          <Button size="compact-sm" variant="subtle" color="gray" onClick={selection.clear}>
            Clear
          </Button>
        </Group>
        <Group gap="xs">
          <Button
            size="compact-sm"
            variant="outline"
            color="red"
            onClick={() => start(lockAll(projects, open))}
          >
            Lock
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => start(changePlanOfAll(projects, open))}>
            Change plan
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => start(interveneInAll(projects, open))}>
            Start intervention
          </Button>
        </Group>
      </Group>
    </section>
  )
}
