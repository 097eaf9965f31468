import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export interface AddressRoute {
  id: number
  address: string
}

export const lockAddressRoutes = (tx: Tx, projectId: number, domainId: number): Promise<AddressRoute[]> =>
  tx
    .selectFrom('control.routes')
    .select(['id', sql<string>`address`.as('address')])
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .where('match', '=', 'address')
    .orderBy('id')
    .forUpdate()
    .execute()

/** Includes inactive routes. */
export async function listForwardingTo(
  tx: Tx,
  projectId: number,
  domainId: number,
  name: string,
): Promise<AddressRoute[]> {
  return tx
    .selectFrom('control.routes')
    .select(['id', sql<string>`forward_to`.as('address')])
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .where(sql<boolean>`lower(split_part(forward_to, '@', 2)) = ${name}`)
    .orderBy('id')
    .execute()
}

export async function readdress(tx: Tx, projectId: number, moves: readonly AddressRoute[]): Promise<void> {
  await sql`
    update control.routes as routes
       set address = moves.address, version = routes.version + 1, updated_at = postern.now()
      from unnest(${moves.map(({ id }) => id)}::bigint[], ${moves.map(({ address }) => address)}::text[])
           as moves (id, address)
     where routes.project_id = ${projectId} and routes.id = moves.id`.execute(tx)
}
