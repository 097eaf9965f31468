import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { linkAdministrator } from '../core/access/enrol.ts'
import { apiKeyScopes } from '../core/api-keys/scopes.ts'
import type { TestApi } from './api.ts'
import type { Client } from './client.ts'
import type { TestDatabase } from './database.ts'
import type { fixtures } from './fixtures.ts'
import { bearers, type Forgery, forgeries, type Scene, tokenForge } from './forgeries.ts'

/** Somebody at the administrative door, and the one answer that they get there; `error` is null for who may pass. */
export interface Identity {
  who: string
  headers: Record<string, string>
  status: number | null
  error: string | null
  /** Known to the service: refusals are counted. */
  userId?: number
}

interface Cast {
  api: TestApi
  database: TestDatabase
  /** The administrator of the scene, and their address. */
  admin: Client
  email: string
  scene: Scene
  make: ReturnType<typeof fixtures>
  project: { id: number; user_id: number }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Of every kind of forged token one; all of them knock at the door in core/access/bearer.test.ts. */
const forgedKinds = [
  'no Authorization header',
  'an empty Authorization header',
  'the scheme without a token',
  'garbage',
  'a genuine token that has expired',
  'a genuine token whose issuer is another',
  'a genuine token whose audience is another',
  'a genuine token relabelled RS256',
  'a genuine token relabelled HS256',
  'a genuine token whose type is JWT',
  'no signature and the algorithm none',
  'the right claims by another key under the id of our key',
  'a genuine token whose key id is unknown',
  'a genuine token whose session is ended',
  'a genuine token whose session is of a password alone',
  'a genuine token whose subject is a user who does not exist',
]

/** Everybody who is not to pass. */
export async function strangers(cast: Cast): Promise<Identity[]> {
  const { scene } = cast
  return [
    ...(await forgers(scene)),
    {
      who: 'a live session cookie without a token',
      headers: { cookie: `postern.session_token=${encodeURIComponent(scene.sessionCookie)}` },
      status: 401,
      error: 'unauthenticated',
    },
    ...(await people(cast)),
    ...(await formerAdministrators(cast)),
    ...(await apiKeys(cast)),
  ]
}

/** The same administrator by every way in. */
export async function administrators({ api, scene, email }: Cast): Promise<Identity[]> {
  const { auth, db } = api.context
  const deps = { auth, adminDb: db.admin, identityDb: db.identity }
  await linkAdministrator(deps, email, scene.outside.issuer, outsideSubject)
  const session = tokenForge(scene).genuine({ sid: String(scene.sessions.own) })
  const identities = {
    'an administrator from the shell': await api.tokenOf(email),
    'an administrator with a session of two factors': session,
    'an administrator of the outside issuer': await scene.outside.sign({ sub: outsideSubject }),
  }
  return Object.entries(identities).map(
    ([who, token]): Identity => ({ who, headers: bearer(token), status: null, error: null }),
  )
}

const outsideSubject = 'ada-7f3c'

export async function forgers(scene: Scene): Promise<Identity[]> {
  const kinds = forgeries(scene)
  const { outside } = scene
  const picked = forgedKinds.map(
    (wanted) => kinds.find(({ kind }) => kind === wanted) ?? assert.fail(`no forgery is called ${wanted}`),
  )
  const swapped = bearers({
    "an administrator's outside token under the id of another key of its issuer": () =>
      outside.sign({ sub: outsideSubject }, { header: { kid: outside.key('RS256').kid } }),
  })
  const asIdentity = async ({ kind, authorization, error }: Forgery): Promise<Identity> => {
    const value = await authorization()
    return { who: kind, headers: value === undefined ? {} : { authorization: value }, status: 401, error }
  }
  return Promise.all([...picked, ...swapped].map(asIdentity))
}

/** Who can sign in and is no administrator, whatever they are in the project that they ask about. */
async function people({ scene, make, project }: Cast): Promise<Identity[]> {
  const { genuine } = tokenForge(scene)
  const member = async (role: string) => {
    const user = await make.makeUser()
    await make.makeMember(project.id, { email: user.email, role })
    return user.id
  }
  const users = {
    'the owner of the project': project.user_id,
    'an admin of the project': await member('admin'),
    'a developer of the project': await member('developer'),
    'a viewer of the project': await member('viewer'),
    'a user without a project': (await make.makeUser()).id,
  }
  return Object.entries(users).map(([who, userId]) => ({
    who,
    headers: bearer(genuine({ sub: String(userId) })),
    status: 403,
    error: 'admin_required',
    userId,
  }))
}

async function formerAdministrators({ api, admin }: Cast): Promise<Identity[]> {
  const former = async (change: object) => {
    const { email, userId } = await api.makeAdmin()
    const headers = bearer(await api.tokenOf(email))
    const { status, text } = await admin.patch(`/users/${userId}`, { ...change, reason: 'Left the team' })
    assert.equal(status, 200, text)
    return { headers, userId }
  }
  const disabled = { who: 'a disabled administrator', status: 401, error: 'unauthenticated' }
  const signedOut = { who: 'an administrator signed out everywhere', status: 401, error: 'unauthenticated' }
  return [
    {
      who: 'a demoted administrator',
      ...(await former({ role: 'user' })),
      status: 403,
      error: 'admin_required',
    },
    { ...disabled, headers: (await former({ is_active: false })).headers },
    { ...signedOut, headers: (await former({ end_sessions: true })).headers },
  ]
}

async function apiKeys({ database, admin, make, project }: Cast): Promise<Identity[]> {
  const scopes = [...apiKeyScopes]
  const secretOf = async (changes: Parameters<typeof make.makeApiKey>[1] = {}) =>
    (await make.makeApiKey(project.id, { allowed_ips: [], ...changes })).secret
  const keys: Record<string, string> = {
    'a live API key of every scope': await secretOf({ scopes }),
    'a test API key of every scope': await secretOf({ scopes, mode: 'test' }),
    'a revoked API key': await secretOf({ is_active: false }),
    ...(await formerApiKeys(database, admin, make, project.id)),
    'a made-up live API key': `pk_live_${base62(49)}`,
    'a made-up test API key': `pk_test_${base62(49)}`,
    'an API key without its checksum': `pk_live_${base62(43)}`,
    'the beginning of an API key': 'pk_',
    'an API key in capitals': `PK_LIVE_${base62(49)}`,
    'an API key with a token behind it': `pk_live_${base62(49)}.e30.e30`,
  }
  for (const scope of scopes) keys[`an API key of scope ${scope}`] = await secretOf({ scopes: [scope] })
  return Object.entries(keys).map(([who, key]) => ({
    who,
    headers: bearer(key),
    status: 403,
    error: 'api_key_not_allowed',
  }))
}

/** Secrets that opened something once. */
async function formerApiKeys(
  database: TestDatabase,
  admin: Client,
  make: Cast['make'],
  projectId: number,
): Promise<Record<string, string>> {
  const [expired, rotated, deleted] = [
    await make.makeApiKey(projectId),
    await make.makeApiKey(projectId),
    await make.makeApiKey(projectId),
  ]
  const pathOf = (key: { resource: { id: number } }) => `/projects/${projectId}/api-keys/${key.resource.id}`
  await database.query(
    `update control.api_keys set expires_at = postern.now() - interval '1 hour' where id = $1`,
    [expired.resource.id],
  )
  const reason = 'Found in a public repository'
  assert.equal((await admin.post(`${pathOf(rotated)}/rotate`, { reason })).status, 200)
  assert.equal((await admin.delete(pathOf(deleted), { reason })).status, 204)
  return {
    'an expired API key': expired.secret,
    'the former secret of a rotated API key': rotated.secret,
    'a deleted API key': deleted.secret,
  }
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const base62 = (length: number): string =>
  Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join('')
