import type { Chance } from '../../harness/random.ts'
import { weighted } from '../draw.ts'
import type { Intent, Outcome } from './intent.ts'
import { addressOf } from './rules.ts'
import {
  chooseProject,
  chooseResource,
  deleteOutcome,
  editOutcome,
  inProject,
  onResource,
  remember,
} from './targets.ts'
import { anId, aTime, timeFrom } from './unknown.ts'
import {
  type GlobalResource,
  type Project,
  planInForce,
  type Resource,
  type View,
  type World,
} from './world.ts'

/**
 * An operation can change members other than its target. The response does not contain them: their ids and times
 * stay unknown until the next read.
 */
export const memberOnWire = (project: Pick<Project, 'id'>, user: GlobalResource | undefined): Resource => ({
  type: 'member',
  id: 0,
  version: 1,
  view: {
    id: anId,
    project_id: project.id,
    user_id: user?.id ?? null,
    email: user?.view['email'],
    name: user?.view['name'],
    role: 'owner',
    invited_at: aTime,
    joined_at: aTime,
    created_at: aTime,
    updated_at: aTime,
  },
})

export function ownerAfter(project: Project, user: GlobalResource): Resource[] {
  const moved = (member: Resource, changes: View): Resource => ({
    ...member,
    version: member.version + 1,
    view: { ...member.view, ...changes, updated_at: timeFrom(member.view['updated_at']) },
  })
  const isNew = (member: Resource) =>
    member.view['user_id'] === user.id ||
    (member.view['user_id'] === null && member.view['email'] === user.view['email'])
  const members = project.resources.members.map((member) => {
    if (member.view['role'] === 'owner') return moved(member, { role: 'admin' })
    if (!isNew(member)) return member
    return moved(member, {
      role: 'owner',
      user_id: user.id,
      name: member.view['name'] ?? user.view['name'],
      joined_at: member.view['joined_at'] ?? aTime,
    })
  })
  return members.some(isNew) ? members : [...members, memberOnWire(project, user)]
}

const hosts = ['example.org', 'Example.COM', 'mail.example.co.uk', 'x-y.example.museum']
const badAddresses = [
  '',
  '@',
  'a@b',
  'a b@example.org',
  'a@example..org',
  '.a@example.org',
  'a.@example.org',
  'a..b@example.org',
  'a@-example.org',
  'a@example.org.',
  'a@example.1',
  '"a b"@example.org',
  'a@[127.0.0.1]',
  'ä@example.org',
  'a@exämple.org',
  'a@example.org\r\nBcc: b@example.org',
  ' a@example.org',
  'a@example.org ',
  'a@b@example.org',
  'a%b@example.org',
  'Ada <a@example.org>',
  `${'a'.repeat(243)}@example.org`.slice(0, 254).replace('.', ''),
  "'; drop table x; --@example.org",
]

function address(world: World, project: Project | undefined, chance: Chance): string {
  const known = project?.resources.members.map((member) => String(member.view['email'])) ?? []
  return weighted<() => string>(chance, [
    [10, () => `guest${chance.below(100_000)}.${world.mark}@${chance.pick(hosts)}`],
    [5, () => String(chance.pick(world.users).view['email'])],
    [2, () => String(chance.pick(world.users).view['email']).toUpperCase()],
    [2, () => `o'neill+${chance.below(1000)}_x-${world.mark}@example.org`],
    [2, () => (known.length > 0 ? chance.pick(known) : 'a@example.org')],
    [1, () => `${'b'.repeat(242)}@example.org`],
    [2, () => chance.pick(badAddresses)],
  ])()
}

export function createMember(world: World, chance: Chance): Intent {
  const parent = chooseProject(world, chance)
  const { project } = parent
  const body = {
    email: address(world, project, chance),
    role: chance.pick(['admin', 'developer', 'viewer']),
  }
  return {
    operation: 'members.create',
    ...inProject(parent),
    body,
    outcome: () => (project ? invited(world, project, body) : 'not_found'),
  }
}

function invited(world: World, project: Project, body: { email: string; role: string }): Outcome | string {
  const email = addressOf(body.email)
  if (email === undefined) return 'validation_failed'
  const { members } = project.resources
  if (members.some(({ view }) => view['email'] === email)) return 'already_exists'
  const user = world.users.find(({ view }) => view['email'] === email)
  const count = members.length + 1
  const { max_users: value } = planInForce(world, project).view as { max_users: number }
  const view = {
    ...memberOnWire(project, user).view,
    email,
    name: user?.view['name'] ?? null,
    role: body.role,
    joined_at: user ? aTime : null,
  }
  return {
    change: { type: 'member', before: null, after: view },
    limit: count > value ? { limit: 'max_users', value, count } : null,
    response: view,
    version: 1,
    commit: (made: View) => remember(project, 'members', 'member', made),
  }
}

export function editMember(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'members')
  if (!chosen) return undefined
  const role = chance.pick(['admin', 'developer', 'viewer', 'admin', 'developer', 'viewer', 'owner'])
  const { project, resource } = chosen
  return {
    ...onResource('members', chosen),
    operation: 'members.edit',
    body: { role },
    outcome() {
      if (!project || !resource) return 'not_found'
      const before = resource.view
      if (before['role'] !== role && before['role'] === 'owner') return 'last_owner'
      if (before['role'] !== role && role === 'owner') return 'validation_failed'
      return editOutcome(resource, project.acts, { role })
    },
  }
}

export function deleteMember(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'members')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    ...onResource('members', chosen),
    operation: 'members.delete',
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      return resource.view['role'] === 'owner' ? 'last_owner' : deleteOutcome(project, 'members', resource)
    },
  }
}
