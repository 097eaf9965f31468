import { Radio, Stack, Text } from '@mantine/core'
import type { Domain, Route } from '../../api/operations.gen.ts'
import { useAll } from '../../api/queries.ts'
import { AddressField } from '../../components/address-field.tsx'
import { Asked } from '../../components/states.tsx'
import classes from './address-routes.module.css'

/** What becomes of the address routes of a domain when its name changes. */
export interface Choice {
  isKeeping: boolean
  /** Where they are replaced: what stands before the @, by the id of the route. */
  locals: Record<number, string>
}

type AddressRoute = Route & { address: string }

export function RouteChoice({
  domain,
  newName,
  choice,
  set,
}: {
  domain: Domain
  newName: string
  choice: Choice
  set: (part: Partial<Choice>) => void
}) {
  const query = useAll('routing.list', { project_id: domain.project_id })
  if (newName === domain.name) {
    return <Text>The name stays, so the routes do. There is nothing to choose here.</Text>
  }
  return (
    <Asked query={query}>
      {(all) => {
        const routes = all.filter((route): route is AddressRoute => isOf(domain, route))
        return routes.length === 0 ? (
          <Text>
            {domain.name} has no address routes. There is nothing to choose here; a catch-all follows the
            domain by itself.
          </Text>
        ) : (
          <Choosing routes={routes} newName={newName} choice={choice} set={set} />
        )
      }}
    </Asked>
  )
}

const isOf = ({ id }: Domain, { domain_id, address }: Route): boolean => domain_id === id && address !== null

const localOf = (address: string): string => address.slice(0, address.lastIndexOf('@'))

function Choosing({
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
  const choose = (way: string) =>
    set({
      isKeeping: way === 'keep',
      locals:
        way === 'keep' ? {} : Object.fromEntries(routes.map(({ id, address }) => [id, localOf(address)])),
    })
  return (
    <>
      <Radio.Group
        label={`What becomes of ${routes.length === 1 ? 'the address route' : `the ${routes.length} address routes`}?`}
        value={isKeeping ? 'keep' : 'replace'}
        onChange={choose}
      >
        <Stack gap="xs" mt="xs">
          <Radio value="keep" label="Each keeps what stands before the @" />
          <Radio value="replace" label="I give each a new address" />
        </Stack>
      </Radio.Group>
      <table className={classes.moves}>
        <thead>
          <tr>
            <th scope="col">Now</th>
            <th scope="col">Then</th>
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
