import { Button, Menu } from '@mantine/core'

export interface RowAct {
  label: string
  onClick: () => void
  isDangerous?: boolean
}

/** The actions for a row that has no page of its own. */
export function RowMenu({ of, acts }: { of: string; acts: RowAct[] }) {
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button size="compact-sm" variant="subtle" color="gray" aria-label={`More for ${of}`}>
          ⋯
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {acts.map(({ label, onClick, isDangerous }) => (
          <Menu.Item key={label} onClick={onClick} c={isDangerous ? 'var(--postern-bad)' : undefined}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
