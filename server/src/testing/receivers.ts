import type { Client } from './client.ts'
import type { TestDatabase } from './database.ts'
import { fixtures } from './fixtures.ts'

/** Projects that take mail in. */
export function receivers(database: TestDatabase, admin: Client) {
  const make = fixtures(database, admin)

  /** A project with a domain and an endpoint, and what makes routes of it; without an address, its catch-all. */
  async function makeReceiver({
    status = 'verified',
    name,
    planId,
  }: {
    status?: 'verified' | 'pending'
    name?: string
    planId?: number
  } = {}) {
    const project = await make.makeProject(planId === undefined ? {} : { plan_id: planId })
    const domain = await make.makeDomain(project.id, {
      ...(name && { name }),
      ...{ status, mta_provider: 'service' },
    })
    // As a look at the DNS would leave it.
    await database.query(`update control.dkim_keys set state = 'active' where project_id = $1`, [project.id])
    const { resource: endpoint } = await make.makeEndpoint(project.id)
    const at = (local: string) => `${local}@${domain.name}`
    const route = async (local: string | null, changes: object, { isConfirmed = true } = {}) => {
      const made = await make.makeRoute(project.id, {
        domain_id: domain.id,
        ...(local === null
          ? { match: 'catch_all', address: null }
          : { match: 'address', address: at(local) }),
        ...changes,
      })
      // As the target of a forward leaves it.
      if (isConfirmed && made.forward_to !== null) {
        await database.query('update control.routes set forward_confirmed_at = now() where id = $1', [
          made.id,
        ])
      }
      return made
    }
    return {
      id: project.id,
      path: `/projects/${project.id}`,
      domain,
      endpoint,
      toEndpoint: { action: 'endpoint' as const, endpoint_id: endpoint.id },
      at,
      route,
    }
  }

  return { ...make, makeReceiver }
}
