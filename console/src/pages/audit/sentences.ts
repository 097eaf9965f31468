import type { AuditEntry, Operations } from '../../api/operations.gen.ts'

/**
 * Rows of the audit as sentences: "Ada locked Acme". What happened is told from the operation and from what was before
 * and after; whose names the row does not hold are looked up by whoever shows it.
 */
export interface Names {
  /** Undefined for whom nobody knows any more. */
  user(id: number): string | undefined
  project(id: number): string | undefined
  plan(id: number): string | undefined
}

type MutationId = {
  [Id in keyof Operations]: Operations[Id]['hasPreview'] extends true ? Id : never
}[keyof Operations]

/** What is done by commands at the server itself, and by nobody else. */
type ShellAct =
  | 'users.create'
  | 'users.reset'
  | 'users.reset-password'
  | 'users.link'
  | 'users.draw-token'
  | 'audit.erase'
  | 'secrets.rewrap'

type State = Record<string, unknown>

interface Told {
  was: State
  is: State
  /** The fields that differ. */
  changed: string[]
  /** "endpoint Orders"; "endpoint 4" where the row does not tell the name. */
  thing: string
  /** "Acme". */
  project: string
  /** Who was acted upon. */
  person: string
  names: Names
}

/** What was done, without who did it: "locked Acme". */
type Deed = (told: Told) => string

const deeds: Record<MutationId | ShellAct, Deed> = {
  'projects.create': ({ project }) => `created ${project}`,
  'projects.edit': (told) => projectEdit(told),
  'projects.set-billing': ({ project, changed, is }) =>
    changed.includes('billing_subscription_status')
      ? `set the billing of ${project} to ${words(is['billing_subscription_status'] ?? 'not billed')}`
      : `set the billing of ${project}`,
  'members.create': ({ person, project, is }) => `invited ${person} to ${project} as ${words(is['role'])}`,
  'members.edit': ({ person, project, was, is }) =>
    `made ${person} ${words(is['role'])} of ${project} instead of ${words(was['role'])}`,
  'members.delete': ({ person, project }) => `removed ${person} from ${project}`,
  'domains.create': ({ thing, project }) => `added ${thing} to ${project}`,
  'domains.edit': (told) => domainEdit(told),
  'domains.delete': ({ thing, project }) => `deleted ${thing} of ${project}`,
  'domains.verify': ({ thing, project }) => `had the records of ${thing} of ${project} looked at`,
  'domains.rotate': ({ thing, project }) => `rotated the DKIM key of ${thing} of ${project}`,
  'endpoints.create': ({ thing, project }) => `added ${thing} to ${project}`,
  'endpoints.edit': (told) => configurationEdit(told),
  'endpoints.delete': ({ thing, project }) => `deleted ${thing} of ${project}`,
  'endpoints.rotate': ({ thing, project }) => `rotated the secret of ${thing} of ${project}`,
  'endpoints.test': ({ thing, project }) => `sent a test event to ${thing} of ${project}`,
  'endpoints.replay': ({ thing, project, is }) =>
    `replayed ${is['event_id'] ? 'an event' : 'the events of a stretch of time'} to ${thing} of ${project}`,
  'routing.create': (told) => `added ${routeOf(told)} to ${told.project}`,
  'routing.edit': (told) => configurationEdit({ ...told, thing: routeOf(told) }),
  'routing.request-confirmation': (told) =>
    `asked the target of ${routeOf(told)} of ${told.project} again to confirm`,
  'routing.delete': (told) => `deleted ${routeOf(told)} of ${told.project}`,
  'api-keys.create': ({ thing, project }) => `made ${thing} for ${project}`,
  'api-keys.edit': (told) => configurationEdit(told),
  'api-keys.delete': ({ thing, project }) => `deleted ${thing} of ${project}`,
  'api-keys.rotate': ({ thing, project }) => `rotated the secret of ${thing} of ${project}`,
  'messages.cancel': ({ thing, project }) => `canceled ${thing} of ${project}`,
  'suppressions.delete': ({ person, project }) => `deleted the suppression of ${person} in ${project}`,
  'queue.hold': ({ project }) => `held the mail of ${project}`,
  'queue.release': ({ project }) => `released the mail of ${project}`,
  'plans.create': ({ thing }) => `created ${thing}`,
  'plans.edit': ({ project: _, ...told }) => configurationEdit(told),
  'users.edit': (told) => userEdit(told),
  'users.create': ({ person }) => `made ${person} an administrator`,
  'users.reset': ({ person }) => `made ${person} an administrator with new credentials`,
  'users.reset-password': ({ person }) => `made a link to set a new password for ${person}`,
  'users.link': ({ person, is }) => `linked ${person} to ${words(is['issuer'])}`,
  'users.draw-token': ({ person }) => `drew an access token of ${person}`,
  'audit.erase': ({ is }) => `erased a person from ${words(is['rows'])} places of the audit`,
  'secrets.rewrap': ({ is, thing }) => `brought the keys of ${words(is['keys'])} projects under ${thing}`,
}

/** Everything that the audit can hold, for whoever looks for one kind. */
export const auditedOperations = Object.keys(deeds).sort()
export const auditedResources = [
  'project',
  'member',
  'domain',
  'endpoint',
  'route',
  'api_key',
  'message',
  'queue',
  'plan',
  'user',
  'person',
  'master_key',
]

export type Entry = Pick<
  AuditEntry,
  | 'actor'
  | 'operation'
  | 'before'
  | 'after'
  | 'subject'
  | 'reason'
  | 'resource_type'
  | 'resource_id'
  | 'project_id'
>

/** "Ada locked Acme", without the reason. */
export function sentenceOf(entry: Entry, names: Names): string {
  return `${actorOf(entry, names)} ${deedOf(entry, names)}`
}

export function actorOf({ actor: { id, email } }: Pick<AuditEntry, 'actor'>, names: Names): string {
  return id === 0 ? "The server's shell" : (names.user(id) ?? email ?? `User ${id}`)
}

/** Users of whom a sentence speaks without naming them. */
export function usersIn({ actor, operation, after }: Entry): number[] {
  const owner = operation === 'projects.edit' ? after?.['user_id'] : undefined
  return [actor.id, ...(typeof owner === 'number' ? [owner] : [])].filter((id) => id > 0)
}

function deedOf(entry: Entry, names: Names): string {
  const { operation, resource_type: type, resource_id: id, project_id, subject } = entry
  const [was, is] = [entry.before ?? {}, entry.after ?? {}]
  const nameNow = project_id === null ? undefined : names.project(project_id)
  const nameThen = type === 'project' ? (was['name'] ?? is['name']) : undefined
  const told = {
    was,
    is,
    changed: Object.keys(is).filter((field) => JSON.stringify(was[field]) !== JSON.stringify(is[field])),
    thing: `${kindOf(type)} ${words(was['name'] ?? is['name'] ?? id)}`,
    project: words(nameThen ?? nameNow ?? `project ${project_id}`),
    person: subject?.email ?? `${kindOf(type)} ${id}`,
    names,
  }
  const deed = Object.hasOwn(deeds, operation) ? deeds[operation as MutationId] : undefined
  return deed?.(told) ?? `did ${operation} on ${kindOf(type)} ${id}`
}

type ProjectField = (whom: { it: string; its: string }, value: unknown, names: Names) => string

const projectFields: Record<string, ProjectField> = {
  is_locked: ({ it }, value) => `${value ? 'locked' : 'unlocked'} ${it}`,
  name: ({ it }, value) => `renamed ${it} to ${words(value)}`,
  user_id: ({ it }, value, names) => `gave ${it} to ${names.user(Number(value)) ?? `user ${words(value)}`}`,
  reputation_score: ({ its }, value) => `set ${its} score to ${words(value)}`,
  allow_service_mta: ({ it }, value) =>
    value ? `let ${it} use our own MTAs` : `kept ${it} off our own MTAs`,
  plan_id: ({ it }, value, names) => `put ${it} on ${planOf(value, names)}`,
  admin_plan_id: ({ its }, value, names) =>
    value === null ? `took ${its} plan override away` : `overrode ${its} plan with ${planOf(value, names)}`,
  admin_subscription_status: ({ its }, value) =>
    value === null
      ? `took ${its} subscription override away`
      : `overrode ${its} subscription with ${words(value)}`,
}

function projectEdit({ project, changed, is, names }: Told): string {
  const told = Object.entries(projectFields).filter(([field]) => changed.includes(field))
  const parts = told.map(([field, tell], place) => {
    const whom = place === 0 ? { it: project, its: `${project}'s` } : { it: 'it', its: 'its' }
    return tell(whom, is[field], names)
  })
  return parts.length === 0 ? `edited ${project}` : listed(parts)
}

function domainEdit({ thing, project, was, is, changed }: Told): string {
  const parts = [
    ...(changed.includes('name') ? [`renamed ${thing} of ${project} to ${words(is['name'])}`] : []),
    ...(changed.includes('mta_provider')
      ? [
          `moved ${changed.includes('name') ? 'it' : `${thing} of ${project}`} from ${words(was['mta_provider'])} to ${words(is['mta_provider'])}`,
        ]
      : []),
  ]
  return parts.length === 0 ? `registered ${thing} of ${project} anew` : listed(parts)
}

/** Of what is sent whole, and of plans: switched, renamed, or other fields. */
function configurationEdit({
  thing,
  project,
  is,
  changed,
}: Omit<Told, 'project'> & { project?: string }): string {
  const whole = project === undefined ? thing : `${thing} of ${project}`
  const [only] = changed
  if (changed.length === 1 && only === 'is_active')
    return `switched ${whole} ${is['is_active'] ? 'on' : 'off'}`
  if (changed.length === 1 && only === 'name') return `renamed ${whole} to ${words(is['name'])}`
  return changed.length === 0 ? `edited ${whole}` : `changed the ${listed(changed.map(fieldOf))} of ${whole}`
}

function userEdit({ person, is, changed }: Told): string {
  const parts = [
    ...(changed.includes('role')
      ? [
          is['role'] === 'admin'
            ? `made ${person} an administrator`
            : `took the administrator's role from ${person}`,
        ]
      : []),
    ...(changed.includes('is_active')
      ? [is['is_active'] ? `let ${person} in again` : `shut ${person} out`]
      : []),
    ...(changed.includes('sessions') ? [`ended the sessions of ${person}`] : []),
  ]
  return parts.length === 0 ? `ended the sessions of ${person}` : listed(parts)
}

function routeOf({ was, is }: Told): string {
  const address = was['address'] ?? is['address']
  if (typeof address === 'string') return `the route for ${address}`
  return `the catch-all route of domain ${words(was['domain_id'] ?? is['domain_id'])}`
}

const planOf = (id: unknown, names: Names): string => `plan ${names.plan(Number(id)) ?? words(id)}`
const kindOf = (type: string): string => (type === 'api_key' ? 'API key' : type.replaceAll('_', ' '))
const fieldOf = (field: string): string => (field === 'is_active' ? 'state' : field.replaceAll('_', ' '))
/** Whoever wants to read all of a long name finds it with the row. */
const longest = 80
const words = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  return text.length > longest ? `${text.slice(0, longest - 1).toWellFormed()}…` : text
}
const listed = (parts: string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
