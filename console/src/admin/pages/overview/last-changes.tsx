import { Group, Title } from '@mantine/core'
import type { AuditEntry } from '../../../api/operations.gen.ts'
import { To } from '../../../components/link.tsx'
import { Rows } from '../../../components/list.tsx'
import { Empty } from '../../../components/states.tsx'
import { useNames } from '../audit/names.ts'
import { changeColumn, timeColumn } from '../audit/timeline.tsx'

export function LastChanges({ acts }: { acts: AuditEntry[] }) {
  const names = useNames(acts)
  return (
    <section>
      <Group mb="sm" justify="space-between">
        <Title order={2}>Last changes</Title>
        <To to="/audit" size="sm">
          All changes
        </To>
      </Group>
      {acts.length === 0 ? (
        <Empty title="No changes yet">Changes by administrators appear here.</Empty>
      ) : (
        <Rows label="Last changes" rows={acts} columns={[changeColumn(names), timeColumn]} isProse />
      )}
    </section>
  )
}
