import { Button, Menu } from '@mantine/core'
import { Children, type ReactNode } from 'react'

/** A resource's actions at the top of its page: "Edit", and a menu with all others. An empty menu is not shown. */
export function HeadActions({
  of,
  edit,
  children,
}: {
  /** For example "project". An endpoint's page has the actions of both the endpoint and its project. */
  of: string
  /** False if the administrator cannot edit the resource. */
  edit: (() => void) | false
  /** The menu items. */
  children: ReactNode
}) {
  return (
    <>
      {edit && (
        <Button variant="default" onClick={edit} aria-label={`Edit ${of}`}>
          Edit
        </Button>
      )}
      {Children.toArray(children).length > 0 && (
        <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
          <Menu.Target>
            <Button variant="default" aria-label={`More… for this ${of}`}>
              More…
            </Button>
          </Menu.Target>
          <Menu.Dropdown>{children}</Menu.Dropdown>
        </Menu>
      )}
    </>
  )
}
