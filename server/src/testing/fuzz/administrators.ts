import { Chance } from '../harness/random.ts'
import { type Caller, type FuzzContext, mismatch } from './caller.ts'
import { parsed } from './check-response.ts'
import { listed } from './compare.ts'
import { seedOf } from './draw.ts'
import { encodePlain } from './encode.ts'

/**
 * Several users grant and revoke the administrator role, for each other and themselves, and revoke each other's tokens.
 * At least one administrator must always remain, and requests by users without the role must fail. This part changes
 * all of the service's administrators, so it cannot run in parallel with other parts.
 */
interface Person {
  id: number
  email: string
  isAdmin: boolean
  isActive: boolean
  hasSecondFactor: boolean
  /** False if the token was revoked after it was issued. */
  isTokenGood: boolean
  token: string
}

const steps = 250

/** The actor is an administrator before and after the run. */
export async function runAdministrators(context: FuzzContext, caller: Caller, seed: number): Promise<void> {
  const people = await createPeople(context, caller)
  const issueToken = async (person: Person): Promise<void> => {
    Object.assign(person, { token: await context.tokenOf(person.email), isTokenGood: true })
  }
  for (let step = 0; step < steps; step++) {
    const chance = new Chance(seedOf(seed, step))
    const able = people.filter((person) => person.isAdmin && person.isActive)
    const by = chance.happens(0.8) ? chance.pick(able) : chance.pick(people)
    if (able.includes(by) && !by.isTokenGood && chance.happens(0.9)) await issueToken(by)
    const target = chance.happens(0.4) ? by : chance.pick(people)
    await edit(context, caller, people, by, target, changeBy(chance))
  }
  const [actor] = people
  const left = people.find((person) => person.isAdmin && person.isActive)
  if (!actor || !left) throw new Error('no administrator is left')
  if (!left.isTokenGood) await issueToken(left)
  await edit(context, caller, people, left, actor, { role: 'admin', is_active: true })
  await context.renew()
}

async function createPeople(context: FuzzContext, caller: Caller): Promise<Person[]> {
  const mark = `solo${process.pid}`
  await context.makeUsers(mark, 3)
  const data = await listed(context, caller, { operation: 'users.list', params: {}, query: { q: mark } })
  const plainUser = { isAdmin: false, isActive: true, isTokenGood: false, token: 'x' }
  return [
    {
      ...{ ...context.actor, isAdmin: true, isActive: true, hasSecondFactor: true },
      ...{ isTokenGood: true, token: context.token() },
    },
    ...data.map(({ id, email, two_factor_enabled }) => ({
      ...{ ...plainUser, id: Number(id), email: String(email) },
      hasSecondFactor: two_factor_enabled === true,
    })),
  ]
}

interface Change {
  role?: 'user' | 'admin'
  is_active?: boolean
  end_sessions?: boolean
}

const changeBy = (chance: Chance): Change => ({
  ...(chance.happens(0.5) ? { role: chance.happens(0.6) ? 'user' : 'admin' } : {}),
  ...(chance.happens(0.4) ? { is_active: chance.happens(0.5) } : {}),
  ...(chance.happens(0.15) ? { end_sessions: chance.happens(0.5) } : {}),
})

async function edit(
  context: FuzzContext,
  caller: Caller,
  people: readonly Person[],
  by: Person,
  target: Person,
  change: Change,
): Promise<void> {
  const operation = context.document.operation('users.edit')
  const content = { params: { id: target.id }, body: { ...change, reason: 'Test of administrator rights' } }
  const expected = predict(people, by, target, change)
  const response = await caller.send(operation, encodePlain(operation, by.token, content))
  const body = parsed(response) as { error?: string; role?: string; is_active?: boolean }
  const found = body.error ? `${response.status} ${body.error}` : `${response.status}`
  if (found !== expected) mismatch([`${by.email} edits ${target.email}: expected ${expected}, got ${found}`])
  if (response.status !== 200) return
  if (change.end_sessions || (target.isActive && change.is_active === false)) target.isTokenGood = false
  target.isAdmin = change.role === undefined ? target.isAdmin : change.role === 'admin'
  target.isActive = change.is_active ?? target.isActive
  const actual = { role: body.role, is_active: body.is_active }
  const known = { role: target.isAdmin ? 'admin' : 'user', is_active: target.isActive }
  if (JSON.stringify(actual) !== JSON.stringify(known))
    mismatch([`${target.email} is ${JSON.stringify(actual)}`])
}

function predict(people: readonly Person[], by: Person, target: Person, { role, is_active }: Change): string {
  if (!by.isActive || !by.isTokenGood) return '401 unauthenticated'
  if (!by.isAdmin) return '403 admin_required'
  const others = people.filter((person) => person !== target && person.isAdmin && person.isActive)
  const isOne = target.isAdmin && target.isActive
  const stays = (role ?? 'admin') === 'admin' && (is_active ?? true)
  const isLast = target.hasSecondFactor
    ? !others.some(({ hasSecondFactor }) => hasSecondFactor)
    : others.length === 0
  return isOne && !stays && isLast ? '409 last_administrator' : '200'
}
