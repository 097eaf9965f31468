import { signAccessToken } from '../core/access/better-auth.ts'
import type { ApiKeyConfig } from '../core/api-keys/wire.ts'
import type { Role } from '../core/members/wire.ts'
import type { TestApi } from './api.ts'
import { Client, signedIn } from './client.ts'
import type { TestDatabase } from './database.ts'
import { fixtures, type TestUser } from './fixtures.ts'

export type Customer = Client & { user: TestUser }

/** People and programs at the customers' door, made through the administrators'. */
export async function customers(api: TestApi, database: TestDatabase) {
  const admin = await signedIn(api)
  const make = fixtures(database, admin)
  const { origin } = api.context.config.publicUrl

  const tokenOf = async (userId: number): Promise<string> => {
    const claims = { issuer: origin, audience: `${origin}/v1`, userId, generation: 1, sessionId: undefined }
    return (await signAccessToken(api.context.auth, claims)).token
  }
  const as = async (user: TestUser): Promise<Customer> =>
    Object.assign(new Client(api.url, await tokenOf(user.id), '/v1'), { user })

  /** A new user who is nobody anywhere yet. */
  const stranger = async (): Promise<Customer> => as(await make.makeUser())

  /** A project with its owner. */
  async function ownProject(changes: Parameters<typeof make.makeProject>[0] = {}) {
    const owner = await stranger()
    return { owner, project: await make.makeProject({ ...changes, user_id: owner.user.id }) }
  }

  async function member(projectId: number, role: Exclude<Role, 'owner'>) {
    const customer = await stranger()
    const { id } = await make.makeMember(projectId, { email: customer.user.email, role, reason: 'Needed' })
    return Object.assign(customer, { memberId: id })
  }

  async function keyOf(
    projectId: number,
    scopes: ApiKeyConfig['scopes'],
    changes: Partial<ApiKeyConfig> = {},
  ) {
    const { resource, secret } = await make.makeApiKey(projectId, { allowed_ips: [], ...changes, scopes })
    return Object.assign(new Client(api.url, secret, '/v1'), { id: resource.id, secret })
  }

  return { admin, make, tokenOf, as, stranger, ownProject, member, keyOf }
}
