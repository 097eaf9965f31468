import { Button, Menu } from '@mantine/core'
import type { OperationId } from '../api/client.ts'
import { useCan } from './can.tsx'

export interface RowAct {
  operation: OperationId
  label: string
  onClick: () => void
  isDangerous?: boolean
}

/** The actions for a row that has no page of its own. */
export function RowMenu({ of, acts }: { of: string; acts: RowAct[] }) {
  const can = useCan()
  const allowed = acts.filter(({ operation }) => can(operation))
  if (allowed.length === 0) return null
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button size="compact-sm" variant="subtle" color="gray" aria-label={`More for ${of}`}>
          ⋯
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {allowed.map(({ label, onClick, isDangerous }) => (
          <Menu.Item key={label} onClick={onClick} c={isDangerous ? 'var(--postern-bad)' : undefined}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
