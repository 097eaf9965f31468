import type { ComponentProps } from 'react'
import { useAll } from '../../../api/queries.ts'
import { RouteChoice } from '../../../resources/domains/address-routes.tsx'

/** How a domain's address routes change when the domain is renamed. */
export function RenameRoutes(props: Omit<ComponentProps<typeof RouteChoice>, 'routes'>) {
  const routes = useAll('routing.list', { project_id: props.domain.project_id })
  return <RouteChoice {...props} routes={routes} />
}
