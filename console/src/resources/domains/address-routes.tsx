import { Radio, Stack, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Domain, Route } from '../../api/operations.gen.ts'
import { AddressField } from '../../components/address-field.tsx'
import { QueryState } from '../../components/states.tsx'
import classes from './address-routes.module.css'

/** How a domain's address routes change when the domain is renamed. */
export interface Choice {
  isKeeping: boolean
  /** The new local parts by route id, if the routes are replaced. */
  locals: Record<number, string>
}

type AddressRoute = Route & { address: string }

export function RouteChoice({
  domain,
  routes: query,
  newName,
  choice,
  set,
}: {
  domain: Domain
  /** All routes of the project. */
  routes: UseQueryResult<Route[]>
  newName: string
  choice: Choice
  set: (part: Partial<Choice>) => void
}) {
  if (newName === domain.name) {
    return <Text>The name does not change, so the routes stay as they are.</Text>
  }
  return (
    <QueryState query={query}>
      {(all) => {
        const routes = all.filter((route): route is AddressRoute => isOf(domain, route))
        return routes.length === 0 ? (
          <Text>
            {domain.name} has no address routes. A catch-all route follows the domain automatically.
          </Text>
        ) : (
          <RouteFields routes={routes} newName={newName} choice={choice} set={set} />
        )
      }}
    </QueryState>
  )
}

const isOf = ({ id }: Domain, { domain_id, address }: Route): boolean => domain_id === id && address !== null

const localOf = (address: string): string => address.slice(0, address.lastIndexOf('@'))

function RouteFields({
  routes,
  newName,
  choice: { isKeeping, locals },
  set,
}: {
  routes: AddressRoute[]
  newName: string
  choice: Choice
  set: (part: Partial<Choice>) => void
}) {
  const choose = (option: string) =>
    set({
      isKeeping: option === 'keep',
      locals:
        option === 'keep' ? {} : Object.fromEntries(routes.map(({ id, address }) => [id, localOf(address)])),
    })
  return (
    <>
      <Radio.Group
        label={routes.length === 1 ? '1 address route' : `${routes.length} address routes`}
        value={isKeeping ? 'keep' : 'replace'}
        onChange={choose}
      >
        <Stack gap="xs" mt="xs">
          <Radio value="keep" label="Keep the part before the @" />
          <Radio value="replace" label="Enter new addresses" />
        </Stack>
      </Radio.Group>
      <table className={classes.moves}>
        <thead>
          <tr>
            <th scope="col">Now</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {routes.map(({ id, address }) => (
            <tr key={id}>
              <th scope="row">{address}</th>
              <td>
                {isKeeping ? (
                  `${localOf(address)}@${newName}`
                ) : (
                  <AddressField
                    label={`New address for ${address}`}
                    isLabelHidden
                    domain={newName}
                    local={locals[id] ?? ''}
                    onChange={(local) => set({ locals: { ...locals, [id]: local } })}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}
