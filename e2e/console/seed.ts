import type { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import type { Desk } from './admin-session.ts'

/** What most scenarios begin with, made through the interface. */
export interface Furnished {
  planId: number
  project: { id: number; name: string }
}

export async function furnish({ admin, ada }: Desk, name = 'Acme'): Promise<Furnished> {
  const { id: planId } = await makePlan(admin, { name: 'Starter' })
  return { planId, project: await makeProject(admin, ada.id, planId, name) }
}

export async function makeProject(
  admin: Caller,
  userId: number,
  planId: number,
  name: string,
): Promise<{ id: number; name: string }> {
  const made = await body<{ id: number; name: string }>(
    201,
    admin.post('/admin/projects', { name, user_id: userId, plan_id: planId }),
  )
  const reason = 'A customer since 2019'
  await body(200, admin.patch(`/admin/projects/${made.id}`, { allow_service_mta: true, reason }))
  return made
}
