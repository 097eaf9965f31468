import { Table, Title } from '@mantine/core'
import type { Member } from '../../../api/operations.gen.ts'
import { allowedRoles } from '../../operations.gen.ts'
import classes from './roles.module.css'

type Role = Member['role']

const roles: Role[] = ['owner', 'admin', 'developer', 'viewer']

/** What the roles are allowed to do, each with an operation that stands for it. */
const permissions: [label: string, operation: string][] = [
  ['Read everything in the project, except its log', 'customer.projects.show'],
  ['Send and cancel mail, edit suppressions', 'customer.messages.send'],
  ['Set up domains, endpoints, routing and API keys', 'customer.domains.create'],
  ['Invite and remove members, change roles', 'customer.members.create'],
  ['Rename the project, read its log, appeal against interventions', 'customer.projects.edit'],
  ['Delete the project', 'customer.projects.delete'],
]

export function Roles() {
  return (
    <section>
      <Title order={2} mb="xs">
        What each role can do
      </Title>
      <Table.ScrollContainer minWidth={0}>
        <Table className={classes.roles ?? ''} verticalSpacing={7}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Permission</Table.Th>
              {roles.map((role) => (
                <Table.Th key={role} scope="col">
                  {role}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {permissions.map(([label, operation]) => (
              <Table.Tr key={operation}>
                <Table.Th scope="row">{label}</Table.Th>
                {roles.map((role) => (
                  <Table.Td key={role}>{allowedRoles[operation]?.includes(role) ? <Yes /> : 'no'}</Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  )
}

const Yes = () => <b>yes</b>
