import type { Chance } from '../../harness/random.ts'
import type { ServedDocument } from '../document.ts'
import { absentId } from '../draw.ts'
import { nextAttemptsRead } from './deliveries.ts'
import type { ExpectedRead } from './expected-read.ts'
import { nextMailRead } from './mail.ts'
import { chooseResource } from './targets.ts'
import {
  findById,
  type Noun,
  nouns,
  type Project,
  planInForce,
  projectOnWire,
  type View,
  type World,
} from './world.ts'

export type { ExpectedRead }

const shown = (of: { view: View; version: number } | undefined) =>
  of && { view: of.view, version: of.version }

export function nextRead(document: ServedDocument, world: World, chance: Chance): ExpectedRead | undefined {
  const asked = chance.pick<() => ExpectedRead | undefined>([
    () => showGlobal('plans', world, chance),
    () => showGlobal('users', world, chance),
    () => showProject(world, chance),
    () => showProject(world, chance),
    () => showResource(world, chance, chance.pick(nouns)),
    () => showResource(world, chance, chance.pick(nouns)),
    () => listResources(world, chance, chance.pick(nouns)),
    () => findProjects(document, world, chance),
    () => findUsers(document, world, chance),
    () => nextMailRead(world, chance),
    () => nextMailRead(world, chance),
    () => nextAttemptsRead(world, chance),
  ])()
  return asked && document.has(asked.operation) ? asked : undefined
}

function showGlobal(noun: 'plans' | 'users', world: World, chance: Chance): ExpectedRead {
  const id = chance.happens(0.1) ? absentId(chance) : chance.pick(world[noun]).id
  return { operation: `${noun}.show`, params: { id }, expected: shown(findById(world[noun], id)) }
}

function showProject(world: World, chance: Chance): ExpectedRead {
  const id = chance.happens(0.1) ? absentId(chance) : chance.pick(world.projects).id
  const project = findById(world.projects, id)
  return {
    operation: 'projects.show',
    params: { project_id: id },
    expected: project && { view: projectOnWire(world, project), version: project.version },
  }
}

function showResource(world: World, chance: Chance, noun: Noun): ExpectedRead | undefined {
  const chosen = chooseResource(world, chance, noun)
  return chosen && { operation: `${noun}.show`, params: chosen.params, expected: shown(chosen.resource) }
}

export const listOf = (project: Project, noun: Noun): ExpectedRead => ({
  operation: `${noun}.list`,
  params: { project_id: project.id },
  expected: { list: project.resources[noun].map(({ view }) => view).reverse() },
})

function listResources(world: World, chance: Chance, noun: Noun): ExpectedRead {
  if (!chance.happens(0.1)) return listOf(chance.pick(world.projects), noun)
  return { operation: `${noun}.list`, params: { project_id: absentId(chance) }, expected: undefined }
}

/** Filters by one of this sequence's plans, to exclude other sequences' projects. */
function findProjects(document: ServedDocument, world: World, chance: Chance): ExpectedRead {
  const plan = chance.pick(world.plans)
  const known = document.operation('projects.list').parameters.map(({ name }) => name)
  const filters = Object.entries(projectFilters(world, chance)).filter(
    ([name]) => known.includes(name) && chance.happens(0.3),
  )
  const found = world.projects
    .filter((project) => planInForce(world, project) === plan)
    .filter((project) => filters.every(([, { accepts }]) => accepts(project)))
  const isPlain = found.every(({ view }) => /^[\x20-\x7e]*$/.test(String(view['name'])))
  const offered = Object.keys(orders).filter((order) => isPlain || !order.endsWith('name'))
  const sort = known.includes('sort') && chance.happens(0.5) ? chance.pick(offered) : '-id'
  found.sort(orders[sort])
  return {
    operation: 'projects.list',
    params: {},
    query: {
      plan_id: plan.id,
      ...Object.fromEntries(filters.map(([name, { value }]) => [name, value])),
      ...(sort === '-id' ? {} : { sort }),
    },
    expected: { list: found.map((project) => projectOnWire(world, project)) },
  }
}

interface Filter {
  value: string | number | boolean
  accepts: (project: Project) => boolean
}

function projectFilters(world: World, chance: Chance): Record<string, Filter> {
  const name = String(chance.pick(world.projects).view['name'])
  const start = chance.below(name.length)
  // Cut between characters and in the original case: the model defines case folding only for ASCII.
  const q = chance.happens(0.2)
    ? 'no such name'
    : [...name.slice(start)].slice(0, 1 + chance.below(5)).join('')
  const locked = chance.happens(0.5)
  const over = chance.happens(0.5)
  const [least, most] = [chance.below(101), chance.below(101)]
  const scoreOf = ({ view }: Project) => Number(view['reputation_score'])
  return {
    ...(q.isWellFormed() && q !== ''
      ? { q: { value: q, accepts: ({ view }: Project) => fold(String(view['name'])).includes(fold(q)) } }
      : {}),
    locked: { value: locked, accepts: ({ view }) => view['is_locked'] === locked },
    min_score: { value: least, accepts: (project) => scoreOf(project) >= least },
    max_score: { value: most, accepts: (project) => scoreOf(project) <= most },
    over_limit: { value: over, accepts: (project) => isOverLimit(world, project) === over },
  }
}

/** Folds only A to Z: for other letters the database's rules are not modelled. */
const fold = (text: string): string => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())

function isOverLimit(world: World, project: Project): boolean {
  const { max_domains, max_users } = planInForce(world, project).view as Record<string, number>
  const { domains, members } = project.resources
  return domains.length > (max_domains ?? 0) || members.length > (max_users ?? 0)
}

type Order = (one: Project, other: Project) => number
const scored = (one: Project, other: Project): number =>
  Number(one.view['reputation_score']) - Number(other.view['reputation_score'])
/** Case-insensitive for ASCII, by code point. */
const named = (one: Project, other: Project): number =>
  Buffer.compare(Buffer.from(fold(String(one.view['name']))), Buffer.from(fold(String(other.view['name']))))
const orders: Record<string, Order> = {
  name: (one, other) => named(one, other) || one.id - other.id,
  '-name': (one, other) => named(other, one) || other.id - one.id,
  '-id': (one, other) => other.id - one.id,
  id: (one, other) => one.id - other.id,
  reputation_score: (one, other) => scored(one, other) || one.id - other.id,
  '-reputation_score': (one, other) => scored(other, one) || other.id - one.id,
}

function findUsers(document: ServedDocument, world: World, chance: Chance): ExpectedRead {
  const user = chance.pick(world.users)
  const known = document.operation('users.list').parameters.map(({ name }) => name)
  const filters = Object.entries({
    role: chance.pick(['user', 'admin']),
    is_active: chance.happens(0.5),
  }).filter(([name]) => known.includes(name) && chance.happens(0.3))
  const isOne = chance.happens(0.5)
  const found = (isOne ? [user] : [...world.users].reverse()).filter(({ view }) =>
    filters.every(([name, value]) => view[name] === value),
  )
  return {
    operation: 'users.list',
    params: {},
    query: {
      q: isOne ? String(user.view['email']) : world.mark.toUpperCase(),
      ...Object.fromEntries(filters),
    },
    expected: { list: found.map(({ view }) => view) },
  }
}
