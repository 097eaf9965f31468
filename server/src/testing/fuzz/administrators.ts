import { Chance } from '../harness/random.ts'
import { type Caller, mismatch, type Stage } from './caller.ts'
import { listed } from './compare.ts'
import { seedOf } from './draw.ts'
import { parsed } from './judge.ts'
import { plainly } from './spoken.ts'

/**
 * A few people who make each other administrators, take it from each other and from themselves, and end each other's
 * tokens: there is always one left, and nobody acts who may not. It needs all administrators of the service, so that
 * nothing else may run beside it.
 */
interface Person {
  id: number
  email: string
  isAdmin: boolean
  isActive: boolean
  hasSecondFactor: boolean
  /** Whether the token was drawn after all that ends tokens. */
  isTokenGood: boolean
  token: string
}

const steps = 250

/** The actor is an administrator before and after. */
export async function runAdministrators(stage: Stage, caller: Caller, seed: number): Promise<void> {
  const people = await gather(stage, caller)
  const draw = async (person: Person): Promise<void> => {
    Object.assign(person, { token: await stage.tokenOf(person.email), isTokenGood: true })
  }
  for (let step = 0; step < steps; step++) {
    const chance = new Chance(seedOf(seed, step))
    const able = people.filter((person) => person.isAdmin && person.isActive)
    const by = chance.happens(0.8) ? chance.pick(able) : chance.pick(people)
    if (able.includes(by) && !by.isTokenGood && chance.happens(0.9)) await draw(by)
    const target = chance.happens(0.4) ? by : chance.pick(people)
    await edit(stage, caller, people, by, target, changeBy(chance))
  }
  const [actor] = people
  const left = people.find((person) => person.isAdmin && person.isActive)
  if (!actor || !left) throw new Error('no administrator is left')
  if (!left.isTokenGood) await draw(left)
  await edit(stage, caller, people, left, actor, { role: 'admin', is_active: true })
  await stage.renew()
}

async function gather(stage: Stage, caller: Caller): Promise<Person[]> {
  const mark = `solo${process.pid}`
  await stage.makeUsers(mark, 3)
  const data = await listed(stage, caller, { operation: 'users.list', params: {}, query: { q: mark } })
  const nobody = { isAdmin: false, isActive: true, isTokenGood: false, token: 'x' }
  return [
    {
      ...{ ...stage.actor, isAdmin: true, isActive: true, hasSecondFactor: true },
      ...{ isTokenGood: true, token: stage.token() },
    },
    ...data.map(({ id, email, two_factor_enabled }) => ({
      ...{ ...nobody, id: Number(id), email: String(email) },
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
  stage: Stage,
  caller: Caller,
  people: readonly Person[],
  by: Person,
  target: Person,
  change: Change,
): Promise<void> {
  const operation = stage.document.operation('users.edit')
  const meaning = { params: { id: target.id }, body: { ...change, reason: 'Whoever may' } }
  const expected = verdict(people, by, target, change)
  const answer = await caller.send(operation, plainly(operation, by.token, meaning))
  const body = parsed(answer) as { error?: string; role?: string; is_active?: boolean }
  const found = body.error ? `${answer.status} ${body.error}` : `${answer.status}`
  if (found !== expected)
    mismatch([`${by.email} edits ${target.email}: the answer is ${found} and not ${expected}`])
  if (answer.status !== 200) return
  if (change.end_sessions || (target.isActive && change.is_active === false)) target.isTokenGood = false
  target.isAdmin = change.role === undefined ? target.isAdmin : change.role === 'admin'
  target.isActive = change.is_active ?? target.isActive
  const told = { role: body.role, is_active: body.is_active }
  const known = { role: target.isAdmin ? 'admin' : 'user', is_active: target.isActive }
  if (JSON.stringify(told) !== JSON.stringify(known)) mismatch([`${target.email} is ${JSON.stringify(told)}`])
}

function verdict(people: readonly Person[], by: Person, target: Person, { role, is_active }: Change): string {
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
