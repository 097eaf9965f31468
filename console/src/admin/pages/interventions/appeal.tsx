import { Text } from '@mantine/core'
import type { Intervention } from '../../../api/operations.gen.ts'
import { useMany } from '../../../api/queries.ts'
import { ExactTime } from '../../../components/relative-time.tsx'
import classes from './appeal.module.css'

/** What a member of the project answered to an intervention. */
export function Appeal({ appeal }: { appeal: NonNullable<Intervention['appeal']> }) {
  const { text, user_id, created_at } = appeal
  const [user] = useMany('users.show', [{ id: user_id }])
  return (
    <figure className={classes.appeal} aria-label="Appeal">
      <Text size="sm" component="figcaption" fw={600}>
        Appeal{user && ` by ${user.email}`} on <ExactTime at={created_at} />
      </Text>
      <Text size="sm" component="blockquote" className={classes.text ?? ''}>
        {text}
      </Text>
    </figure>
  )
}
