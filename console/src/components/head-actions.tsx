import { Button, Menu } from '@mantine/core'
import type { ReactNode } from 'react'

/** The actions of a resource at the head of its page: "Edit", and a menu with all others. */
export function HeadActions({
  of,
  edit,
  children,
}: {
  /** "project". The page of a project's endpoint has the actions of both. */
  of: string
  edit: () => void
  /** Items of the menu. */
  children: ReactNode
}) {
  return (
    <>
      <Button variant="default" onClick={edit} aria-label={`Edit ${of}`}>
        Edit
      </Button>
      <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <Button variant="default" aria-label={`More… for this ${of}`}>
            More…
          </Button>
        </Menu.Target>
        <Menu.Dropdown>{children}</Menu.Dropdown>
      </Menu>
    </>
  )
}
