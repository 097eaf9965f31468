import type { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import type { AdminSession } from './admin-session.ts'

/** The starting point of most scenarios, created through the API. */
export interface SeededProject {
  planId: number
  project: { id: number; name: string }
}

export async function seedProject({ admin, ada }: AdminSession, name = 'Acme'): Promise<SeededProject> {
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
