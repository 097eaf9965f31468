import { List, Stack, Text } from '@mantine/core'
import type { BulkPreview } from '../../api/operations.gen.ts'
import { Sentence } from '../../components/sentence.tsx'
import { Changes } from '../components/changes.tsx'
import classes from './sample.module.css'

/** The previews of some of the projects that a bulk action would change. */
export function Sample({ of }: { of: BulkPreview['sample'] }) {
  if (of.length === 0) return null
  return (
    <Stack gap={4}>
      <Text size="sm" c="dimmed">
        Examples:
      </Text>
      {of.map(({ project_id, project_name, changes, effects, warnings }) => (
        <details key={project_id} className={classes.example}>
          <summary>{project_name}</summary>
          <Changes changes={changes} />
          <List size="sm" spacing={4} mt="xs">
            {[...warnings, ...effects].map((sentence) => (
              <List.Item key={sentence}>
                <Sentence text={sentence} />
              </List.Item>
            ))}
          </List>
        </details>
      ))}
    </Stack>
  )
}
