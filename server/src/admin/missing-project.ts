import { requireProject } from '../core/control/projects/projects.ts'
import type { Db } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'

/**
 * Names the missing project in the error instead of the resource inside it. Operations look up a resource by project
 * and id in one query, so only a 404 costs the second lookup. Administrators may know which projects exist.
 */
export async function namingMissingProject<Result>(
  db: Db,
  params: unknown,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const { project_id } = params as { project_id?: number }
    if (project_id !== undefined && error instanceof PosternError && error.code === 'not_found')
      await db.read((tx) => requireProject(tx, project_id))
    throw error
  }
}
