import { createPrivateKey, type JsonWebKey } from 'node:crypto'
import { symmetricDecrypt } from 'better-auth/crypto'
import { decodeProtectedHeader } from 'jose'
import type { TestApi } from './api.ts'
import { CookieJar } from './cookie-jar.ts'
import type { TestDatabase } from './database.ts'
import type { Scene } from './forgeries.ts'
import type { TestIssuer } from './issuer.ts'
import { totpCode } from './totp.ts'

type Administrator = Awaited<ReturnType<TestApi['makeAdmin']>>

/** Everything that forged tokens are made from, around one administrator. */
export async function makeScene(
  api: TestApi,
  database: TestDatabase,
  admin: Administrator,
  { outside, stranger }: { outside: TestIssuer; stranger: TestIssuer },
): Promise<Scene> {
  const other = await api.makeAdmin()
  const session = (userId: number, lifetime: string, options?: { secondFactor: boolean }) =>
    makeSession(database, userId, lifetime, options)
  const scene: Scene = {
    own: await ownSigningKey(api, database, await api.tokenOf(admin.email)),
    userId: admin.userId,
    sessions: {
      own: await session(admin.userId, '1 hour'),
      ofPasswordAlone: await session(admin.userId, '1 hour', { secondFactor: false }),
      ofAnother: await session(other.userId, '1 hour'),
      expired: await session(admin.userId, '-1 second'),
      ended: await session(admin.userId, '1 hour'),
    },
    users: { disabled: (await api.makeAdmin()).userId, deleted: (await api.makeAdmin()).userId },
    sessionCookie: await sessionCookie(api, admin),
    outside,
    stranger,
  }
  await database.query('delete from control.sessions where id = $1', [scene.sessions.ended])
  await database.query('update control.users set is_active = false where id = $1', [scene.users.disabled])
  await database.query('delete from control.users where id = $1', [scene.users.deleted])
  return scene
}

async function ownSigningKey(api: TestApi, database: TestDatabase, token: string): Promise<Scene['own']> {
  const { kid = '' } = decodeProtectedHeader(token)
  const [row] = await database.query<{ private_key: string }>(
    'select private_key from control.signing_keys where id = $1',
    [kid],
  )
  const { secretConfig } = await api.context.auth.$context
  const jwk = await symmetricDecrypt({
    key: secretConfig,
    data: JSON.parse(row?.private_key ?? '') as string,
  })
  const key = createPrivateKey({ key: JSON.parse(jwk) as JsonWebKey, format: 'jwk' })
  const { origin } = api.context.config.publicUrl
  return { issuer: origin, audience: `${origin}/v1`, kid, key }
}

export async function makeSession(
  database: TestDatabase,
  userId: number,
  lifetime: string,
  { secondFactor = true } = {},
): Promise<number> {
  const [row] = await database.query<{ id: string }>(
    `insert into control.sessions (user_id, token, expires_at, second_factor_at)
     values ($1, gen_random_uuid()::text, now() + $2::interval, case when $3 then now() end) returning id`,
    [userId, lifetime, secondFactor],
  )
  return Number(row?.id)
}

/** The cookie of a session that was opened with both factors. */
async function sessionCookie(api: TestApi, { email, password, totpUri }: Administrator): Promise<string> {
  const browser = new CookieJar(api.url)
  await browser.post('/v1/auth/sign-in', { email, password })
  const response = await browser.post('/v1/auth/totp/code', { code: totpCode(totpUri) })
  const cookies = response.headers.getSetCookie().join('\n')
  const [, value] = /session_token=([^;]+)/.exec(cookies) ?? []
  if (value === undefined) throw new Error(`no session cookie among: ${cookies}`)
  return decodeURIComponent(value)
}
