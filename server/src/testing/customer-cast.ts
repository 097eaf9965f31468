import assert from 'node:assert/strict'
import { apiKeyScopes } from '../core/api-keys/scopes.ts'
import type { ApiKeyConfig } from '../core/api-keys/wire.ts'
import type { Role } from '../core/members/wire.ts'
import type { customers } from './customers.ts'
import type { TestDatabase } from './database.ts'
import type { Scene } from './forgeries.ts'
import { forgers } from './identities.ts'

/** Somebody at the customers' door, and what is known of them there. */
export interface Knocker {
  who: string
  headers: Record<string, string>
  /** Refused with this whatever they ask for; else they get as far as what they are lets them. */
  refusal?: { status: number; error: string }
  /** In the project that is asked about. */
  role?: Role
  /** Of a key; `isForeign` where it is of another project. */
  scopes?: readonly string[]
  isForeign?: true
}

interface Cast {
  people: Awaited<ReturnType<typeof customers>>
  database: TestDatabase
  scene: Scene
  project: { id: number; user_id: number }
  otherProject: { id: number }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const unknown = { status: 401, error: 'unauthenticated' }

export async function knockers(cast: Cast): Promise<Knocker[]> {
  return [
    ...(await forged(cast.scene)),
    ...(await members(cast)),
    ...(await outsiders(cast)),
    ...(await keys(cast)),
  ]
}

async function forged(scene: Scene): Promise<Knocker[]> {
  const all = await forgers(scene)
  return (
    all
      // That is an administrator's rule; here they are a user like every other.
      .filter(({ who }) => !who.includes('of a password alone'))
      // Nobody has linked this one to an account here: unknown all the same.
      .map(({ who, headers, error }) => ({
        who,
        headers,
        refusal: { status: 401, error: error ?? 'unauthenticated' },
      }))
  )
}

async function members({ people, project }: Cast): Promise<Knocker[]> {
  const { tokenOf, member } = people
  const others = ['admin', 'developer', 'viewer'] as const
  return [
    { who: 'the owner', headers: bearer(await tokenOf(project.user_id)), role: 'owner' },
    ...(await Promise.all(
      others.map(async (role) => ({
        who: `a member who is ${role}`,
        headers: (await member(project.id, role)).headers,
        role,
      })),
    )),
  ]
}

/** Signed in, and not of the project. */
async function outsiders({ people, database, project, otherProject }: Cast): Promise<Knocker[]> {
  const { admin, make, stranger, member, as } = people
  const removed = await member(project.id, 'admin')
  await admin.delete(`/projects/${project.id}/members/${removed.memberId}`, { reason: 'Left' })
  const disabled = await member(project.id, 'admin')
  await database.query('update control.users set is_active = false where id = $1', [disabled.user.id])
  // The account came after the invitation, which nobody has accepted.
  const { email } = await make.makeMember(project.id, { role: 'admin' })
  const invited = await as(await make.makeUser({ email }))
  const neighbour = await member(otherProject.id, 'admin')
  return [
    { who: 'a user without a project', headers: (await stranger()).headers },
    { who: 'a member of another project', headers: neighbour.headers, role: 'admin', isForeign: true },
    { who: 'a removed member', headers: removed.headers },
    { who: 'somebody invited who has not joined', headers: invited.headers },
    { who: 'an administrator who is no member', headers: admin.headers },
    { who: 'a disabled member', headers: disabled.headers, refusal: unknown },
  ]
}

async function keys({ people, database, project, otherProject }: Cast): Promise<Knocker[]> {
  const { keyOf, admin } = people
  const every = [...apiKeyScopes]
  const living = async (scopes: ApiKeyConfig['scopes'], projectId = project.id) => ({
    headers: (await keyOf(projectId, scopes)).headers,
    scopes,
  })
  const dead = async (change: (key: { id: number }) => Promise<unknown>) => {
    const key = await keyOf(project.id, every)
    await change(key)
    return { headers: key.headers, refusal: unknown }
  }
  const pathOf = ({ id }: { id: number }) => `/projects/${project.id}/api-keys/${id}`
  const reason = 'Found in a public repository'
  const update = (text: string) => (key: { id: number }) =>
    database.query(`update control.api_keys set ${text} where id = $1`, [key.id])
  const elsewhere = await keyOf(project.id, every, { allowed_ips: ['192.0.2.0/24'] })
  const alone = await Promise.all(
    every.map(async (scope) => ({ who: `a key of scope ${scope}`, ...(await living([scope])) })),
  )
  return [
    ...alone,
    { who: 'a key of every scope', ...(await living(every)) },
    { who: 'a key of another project', ...(await living(every, otherProject.id)), isForeign: true },
    { who: 'a key that is switched off', ...(await dead(update('is_active = false'))) },
    { who: 'an expired key', ...(await dead(update(`expires_at = now() - interval '1 hour'`))) },
    {
      who: 'the former secret of a rotated key',
      ...(await dead((key) => admin.post(`${pathOf(key)}/rotate`, { reason }))),
    },
    { who: 'a deleted key', ...(await dead((key) => admin.delete(pathOf(key), { reason }))) },
    { who: 'a made-up key', headers: bearer(`pk_live_${'A'.repeat(49)}`), refusal: unknown },
    { who: 'the beginning of a key', headers: bearer('pk_'), refusal: unknown },
    {
      who: 'a key from a wrong address',
      headers: elsewhere.headers,
      refusal: { status: 403, error: 'address_not_allowed' },
    },
  ]
}

export function named(cast: readonly Knocker[], who: string): Knocker {
  return cast.find((one) => one.who === who) ?? assert.fail(`nobody is called ${who}`)
}
