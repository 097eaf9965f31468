import type { RequireAdmin } from '../core/access/bearer.ts'
import { PosternError } from '../platform/errors.ts'
import type { HttpServer } from '../platform/http/server.ts'

export interface AdminDeps {
  requireAdmin: RequireAdmin
}

/**
 * The administrative plane. Its operations come with its pipeline; what stands already is the door: whoever
 * is not an administrator learns nothing, not even which addresses exist.
 */
export function adminRoutes(app: HttpServer, { requireAdmin }: AdminDeps): void {
  app.all('/v1/admin/*', {
    onRequest: async (request) => {
      await requireAdmin(request.headers.authorization)
    },
    handler: () => {
      throw new PosternError('not_found', 'There is no such administrative operation.')
    },
  })
}
