import { Chance } from '../harness/random.ts'
import { type Caller, type FuzzContext, mismatch } from './caller.ts'
import { parsed } from './check-response.ts'
import { listed } from './compare.ts'
import { seedOf } from './draw.ts'
import { encodePlain } from './encode.ts'

/**
 * Several users grant and revoke the administrator role, for each other and themselves, limit each other's rights, and revoke
 * each other's tokens. At least one administrator with full rights must always remain, and requests by other users must fail. This part changes
 * all of the service's administrators, so it cannot run in parallel with other parts.
 */
interface Person {
  id: number
  email: string
  isAdmin: boolean
  hasFullRights: boolean
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
    const able = people.filter(canEdit)
    const by = chance.happens(0.8) ? chance.pick(able) : chance.pick(people)
    if (able.includes(by) && !by.isTokenGood && chance.happens(0.9)) await issueToken(by)
    const target = chance.happens(0.4) ? by : chance.pick(people)
    await edit(context, caller, people, by, target, changeBy(chance))
  }
  const [actor] = people
  const left = people.find(canEdit)
  if (!actor || !left) throw new Error('no administrator is left')
  if (!left.isTokenGood) await issueToken(left)
  await edit(context, caller, people, left, actor, { role: 'admin', rights: 'full', is_active: true })
  await context.renew()
}

async function createPeople(context: FuzzContext, caller: Caller): Promise<Person[]> {
  const mark = `solo${process.pid}`
  await context.makeUsers(mark, 3)
  const data = await listed(context, caller, { operation: 'users.list', params: {}, query: { q: mark } })
  const plainUser = { isAdmin: false, hasFullRights: false, isActive: true, isTokenGood: false, token: 'x' }
  return [
    {
      ...{ ...context.actor, isAdmin: true, hasFullRights: true, isActive: true, hasSecondFactor: true },
      ...{ isTokenGood: true, token: context.token() },
    },
    ...data.map(({ id, email, two_factor_enabled }) => ({
      ...{ ...plainUser, id: Number(id), email: String(email) },
      hasSecondFactor: two_factor_enabled === true,
    })),
  ]
}

const canEdit = ({ isAdmin, hasFullRights, isActive }: Person): boolean =>
  isAdmin && hasFullRights && isActive

interface Change {
  role?: 'user' | 'admin'
  rights?: string
  is_active?: boolean
  end_sessions?: boolean
}

const changeBy = (chance: Chance): Change => ({
  ...(chance.happens(0.5) ? { role: chance.happens(0.6) ? 'user' : 'admin' } : {}),
  ...(chance.happens(0.3) ? { rights: chance.pick(['full', 'full', 'support', 'billing', 'auditor']) } : {}),
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
  const body = parsed(response) as { error?: string; role?: string; rights?: string; is_active?: boolean }
  const found = body.error ? `${response.status} ${body.error}` : `${response.status}`
  if (found !== expected) mismatch([`${by.email} edits ${target.email}: expected ${expected}, got ${found}`])
  if (response.status !== 200) return
  if (change.end_sessions || (target.isActive && change.is_active === false)) target.isTokenGood = false
  Object.assign(target, after(target, change))
  const actual = { role: body.role, isFull: body.rights === 'full', is_active: body.is_active }
  const known = {
    ...{ role: target.isAdmin ? 'admin' : 'user', isFull: target.hasFullRights },
    is_active: target.isActive,
  }
  if (JSON.stringify(actual) !== JSON.stringify(known))
    mismatch([`${target.email} is ${JSON.stringify(actual)}`])
}

/** A new administrator has full rights unless others are given. */
function after(target: Person, { role, rights, is_active }: Change) {
  const isAdmin = role === undefined ? target.isAdmin : role === 'admin'
  const isFull = rights === undefined ? !target.isAdmin || target.hasFullRights : rights === 'full'
  return { isAdmin, hasFullRights: isAdmin && isFull, isActive: is_active ?? target.isActive }
}

function predict(people: readonly Person[], by: Person, target: Person, change: Change): string {
  if (!by.isActive || !by.isTokenGood) return '401 unauthenticated'
  if (!by.isAdmin) return '403 admin_required'
  if (!by.hasFullRights) return '403 insufficient_rights'
  const changed = { ...target, ...after(target, change) }
  if (change.rights !== undefined && !changed.isAdmin) return '422 validation_failed'
  const others = people.filter((person) => person !== target && canEdit(person))
  const isLast = target.hasSecondFactor
    ? !others.some(({ hasSecondFactor }) => hasSecondFactor)
    : others.length === 0
  return canEdit(target) && !canEdit(changed) && isLast ? '409 last_administrator' : '200'
}
