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
  app.register(
    (plane, _options, done) => {
      // For every route in here, those of later included: there is no way around the door.
      plane.addHook('onRequest', async (request) => {
        await requireAdmin(request.headers.authorization)
      })
      for (const path of ['/', '/*']) {
        plane.all(path, () => {
          throw new PosternError('not_found', 'There is no such administrative operation.')
        })
      }
      done()
    },
    { prefix: '/v1/admin' },
  )
}
