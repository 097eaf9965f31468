import { Kbd, Modal, Switch, Table, Title } from '@mantine/core'
import { Fragment } from 'react'
import { activeShortcuts } from '../components/shortcuts.ts'
import { useReturnFocus } from '../components/use-return-focus.ts'
import { paletteKeys } from './palette.tsx'
import classes from './shortcuts-dialog.module.css'

/** Keys that the browser, the lists and the dialogs handle. */
const others = [
  { group: 'Page', keys: paletteKeys, label: 'Command palette' },
  { group: 'Page', keys: 'Esc', label: 'Close the dialog, or leave the search' },
  { group: 'Lists', keys: 'Enter', label: 'Open the row' },
]

/** The shortcuts of the page. */
export function ShortcutsDialog({
  close,
  isOn,
  setOn,
}: {
  close: () => void
  isOn: boolean
  setOn: (isOn: boolean) => void
}) {
  useReturnFocus()
  const groups = Map.groupBy([...activeShortcuts(), ...others], ({ group }) => group)
  return (
    <Modal
      opened
      onClose={close}
      title="Keyboard shortcuts"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
      transitionProps={{ duration: 0 }}
    >
      {/* Single keys can collide with speech input and assistive technology (WCAG 2.2, 2.1.4). */}
      <Switch
        label="Shortcuts with single keys"
        description="In this browser. Ctrl-K and Escape always work."
        checked={isOn}
        onChange={(event) => setOn(event.currentTarget.checked)}
        mb="md"
      />
      <div className={classes.groups}>
        {[...groups].map(([group, shortcuts]) => (
          <section key={group}>
            <Title order={3} mb={4}>
              {group}
            </Title>
            <Table aria-label={group} withRowBorders={false} verticalSpacing={3} horizontalSpacing={0}>
              <Table.Tbody>
                {shortcuts.map(({ keys, label }) => (
                  <Table.Tr key={keys}>
                    <Table.Th scope="row" fw={400}>
                      {label}
                    </Table.Th>
                    <Table.Td className={classes.keys ?? ''}>
                      <Keys of={keys} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </section>
        ))}
      </div>
    </Modal>
  )
}

function Keys({ of }: { of: string }) {
  return of.split(' ').map((key, index) => (
    <Fragment key={key}>
      {index > 0 && ' '}
      <Kbd size="xs">{key}</Kbd>
    </Fragment>
  ))
}
