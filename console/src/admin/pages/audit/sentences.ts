import type { AuditEntry, Operations } from '../../../api/operations.gen.ts'
import { counted } from '../../../components/numbers.ts'

/**
 * Audit entries as sentences: "Ada locked Acme". The phrase depends on the operation and on the states before and
 * after. The caller looks up names that an entry does not contain.
 */
export interface Names {
  /** Undefined for a user that no longer exists. */
  user(id: number): string | undefined
  project(id: number): string | undefined
  plan(id: number): string | undefined
  policy(id: number): string | undefined
}

type MutationId = {
  [Id in keyof Operations]: Operations[Id]['hasPreview'] extends true ? Id : never
}[keyof Operations]

/** Operations that exist only on the command line. */
type CommandLineAct =
  | 'users.create'
  | 'users.reset'
  | 'users.reset-password'
  | 'users.reset-second-factor'
  | 'users.link'
  | 'users.unlink'
  | 'users.issue-token'
  | 'audit.erase'
  | 'secrets.rewrap'

/** Operations of the worker. */
type SystemAct =
  | 'bulk.interrupt'
  | 'interventions.drain'
  | 'interventions.expire'
  | 'policies.trip'
  | 'projects.revert'

type State = Record<string, unknown>

interface Details {
  was: State
  is: State
  /** The fields that differ. */
  changed: string[]
  /** "endpoint Orders"; "endpoint 4" if the entry has no name. */
  thing: string
  /** "Acme". */
  project: string
  /** "Acme's mail", or the mail that an operator holds for all projects. */
  mail: string
  /** The user or address that the operation concerns. */
  person: string
  names: Names
}

/** The sentence without its subject: "locked Acme". */
type Phrase = (details: Details) => string

const phrases: Record<MutationId, Phrase> = {
  'projects.create': ({ project }) => `created ${project}`,
  'projects.edit': (details) => projectEdit(details),
  'projects.set-billing': ({ project, changed, is }) =>
    changed.includes('billing_subscription_status')
      ? `set ${project}'s billing to ${words(is['billing_subscription_status'] ?? 'not billed')}`
      : `edited ${project}'s billing`,
  'members.create': ({ person, project, is }) => `added ${person} to ${project} as ${words(is['role'])}`,
  'members.edit': ({ person, project, was, is }) =>
    `changed ${person}'s role in ${project} from ${words(was['role'])} to ${words(is['role'])}`,
  'members.delete': ({ person, project }) => `removed ${person} from ${project}`,
  'domains.create': ({ thing, project }) => `added ${thing} to ${project}`,
  'domains.edit': (details) => domainEdit(details),
  'domains.delete': ({ thing, project }) => `deleted ${thing} in ${project}`,
  'domains.verify': ({ thing, project }) => `queued a DNS check for ${thing} in ${project}`,
  'domains.rotate': ({ thing, project }) => `rotated the DKIM key of ${thing} in ${project}`,
  'endpoints.create': ({ thing, project }) => `created ${thing} in ${project}`,
  'endpoints.edit': (details) => configurationEdit(details),
  'endpoints.delete': ({ thing, project }) => `deleted ${thing} in ${project}`,
  'endpoints.rotate': ({ thing, project }) => `rotated the secret of ${thing} in ${project}`,
  'endpoints.test': ({ thing, project }) => `sent a test event to ${thing} in ${project}`,
  'endpoints.replay': ({ thing, project, is }) =>
    `replayed ${is['event_id'] ? 'an event' : 'the events in a time range'} to ${thing} in ${project}`,
  'routing.create': (details) => `created ${routeOf(details)} in ${details.project}`,
  'routing.edit': (details) => configurationEdit({ ...details, thing: routeOf(details) }),
  'routing.request-confirmation': (details) =>
    `resent the confirmation link for ${routeOf(details)} in ${details.project}`,
  'routing.delete': (details) => `deleted ${routeOf(details)} in ${details.project}`,
  'api-keys.create': ({ thing, project }) => `created ${thing} in ${project}`,
  'api-keys.edit': (details) => configurationEdit(details),
  'api-keys.delete': ({ thing, project }) => `deleted ${thing} in ${project}`,
  'api-keys.rotate': ({ thing, project }) => `rotated the secret of ${thing} in ${project}`,
  'messages.cancel': ({ thing, project }) => `canceled ${thing} in ${project}`,
  'suppressions.create': ({ person, project }) => `suppressed ${person} in ${project}`,
  'suppressions.import': ({ is, project }) =>
    `imported ${counted(Number(is['added'] ?? 0), 'suppression')} into ${project}`,
  'suppressions.delete': ({ person, project }) => `deleted the suppression for ${person} in ${project}`,
  'platform-suppressions.create': ({ person }) => `suppressed ${person} for all projects`,
  'platform-suppressions.import': ({ is }) =>
    `imported ${counted(Number(is['added'] ?? 0), 'suppression')} for all projects`,
  'platform-suppressions.delete': ({ person }) => `deleted the suppression for ${person} for all projects`,
  'queue.hold': ({ mail }) => `held ${mail}`,
  'queue.release': ({ mail }) => `released ${mail}`,
  'queue.discard': ({ project, is }) => `started discarding ${project}'s queued mail${filterOf(is)}`,
  'discards.stop': ({ thing, project }) => `stopped ${thing} in ${project}`,
  'discards.resume': ({ thing, project }) => `resumed ${thing} in ${project}`,
  'interventions.create': (details) => `started a ${interventionOf(details)}`,
  'interventions.edit': (details) => `edited the ${interventionOf(details)}`,
  'interventions.end': (details) => `ended the ${interventionOf(details)}`,
  'reversals.delete': ({ was, project }) =>
    `made the temporary ${words(was['field'])} of ${project} permanent`,
  'notes.create': ({ project }) => `added a note to ${project}`,
  'notes.edit': ({ thing, project }) => `edited ${thing} of ${project}`,
  'notes.delete': ({ thing, project }) => `deleted ${thing} of ${project}`,
  'plans.create': ({ thing }) => `created ${thing}`,
  'plans.edit': ({ project: _, ...details }) => configurationEdit(details),
  'policies.create': ({ thing }) => `created ${thing}`,
  'policies.edit': (details) => policyEdit(details),
  'policies.delete': ({ thing }) => `deleted ${thing}`,
  'bulk.create': (details) => `started ${bulkOf(details, 'a')}`,
  'bulk.stop': (details) => `stopped ${bulkOf(details)}`,
  'bulk.resume': (details) => `resumed ${bulkOf(details)}`,
  'users.edit': (details) => userEdit(details),
  'audit.undo': ({ thing, project: _, changed }) =>
    `undid a change of the ${listed(changed.map(fieldOf))} of ${thing}`,
}

/** Complete sentences without an actor (an operator on the command line): "bo@example.com was linked to …". */
const commandLineSentences: Record<CommandLineAct, Phrase> = {
  'users.create': ({ person }) => `${person} was made an administrator`,
  'users.reset': ({ person }) => `${person} was made an administrator with new credentials`,
  'users.reset-password': ({ person }) => `A password reset link for ${person} was created`,
  'users.reset-second-factor': ({ person }) => `The second factor of ${person} was removed`,
  'users.link': ({ person, is }) => `${person} was linked to ${words(is['issuer'])}`,
  'users.unlink': ({ person, was }) => `${person} was unlinked from ${words(was['issuer'])}`,
  'users.issue-token': ({ person }) => `An access token for ${person} was issued`,
  'audit.erase': ({ is }) => `A person was erased from ${words(is['rows'])} audit entries`,
  'secrets.rewrap': ({ is, thing }) =>
    `The keys of ${words(is['keys'])} projects were rewrapped with ${thing}`,
}

/** Operations that workers perform. */
const systemPhrases: Record<SystemAct, Phrase> = {
  'bulk.interrupt': (details) => `stopped ${bulkOf(details)}, because its administrator lost the right to it`,
  'interventions.drain': ({ project }) => `completed the gradual release of ${project}'s mail`,
  'interventions.expire': (details) => `ended the ${interventionOf(details)}, which had expired`,
  'policies.trip': ({ thing }) => `set ${thing} to shadow, because it reached its limit of projects per hour`,
  'projects.revert': (details) => `${projectEdit(details)} after a temporary override ended`,
}

/** "lock on Acme", "pace of 500 recipients per hour on Acme" or "warning for Acme". */
function interventionOf({ is: { kind, pace_per_hour }, project }: Details): string {
  if (kind === 'warn') return `warning for ${project}`
  const pace = kind === 'pace' ? ` of ${counted(Number(pace_per_hour), 'recipient')} per hour` : ''
  return `${words(kind)}${pace} on ${project}`
}

/** "the bulk action (projects.edit on 3 projects)". */
const bulkOf = ({ is: { operation, matched } }: Details, article = 'the'): string =>
  `${article} bulk action (${words(operation)} on ${counted(Number(matched), 'project')})`

/** " (tag sale, domain example.net)". */
function filterOf({ tag, recipient_domain, older_than }: State): string {
  const parts = [
    ...(tag ? [`tag ${words(tag)}`] : []),
    ...(recipient_domain ? [`domain ${words(recipient_domain)}`] : []),
    ...(older_than ? [`accepted before ${words(older_than)}`] : []),
  ]
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

/** All operations that the audit log can contain, for filters. */
export const auditedOperations = [
  ...Object.keys(phrases),
  ...Object.keys(commandLineSentences),
  ...Object.keys(systemPhrases),
].sort()
export const auditedResources = [
  'project',
  'member',
  'domain',
  'endpoint',
  'route',
  'api_key',
  'message',
  'suppression',
  'platform_suppression',
  'note',
  'queue',
  'discard',
  'intervention',
  'reversal',
  'plan',
  'policy',
  'bulk_action',
  'user',
  'person',
  'master_key',
]

export type Entry = Pick<
  AuditEntry,
  | 'actor_kind'
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
  const { operation } = entry
  const details = detailsOf(entry, names)
  if (isKeyOf(commandLineSentences, operation)) {
    return `${capital(commandLineSentences[operation](details))} from the command line`
  }
  const actor = entry.actor_kind === 'shell' ? 'An operator on the command line' : actorOf(entry, names)
  const known = { ...phrases, ...systemPhrases }
  const phrase = isKeyOf(known, operation)
    ? known[operation](details)
    : `performed ${operation} on ${kindOf(entry.resource_type)} ${entry.resource_id}`
  return `${actor} ${phrase}`
}

const isKeyOf = <T extends object>(record: T, key: PropertyKey): key is keyof T => Object.hasOwn(record, key)
/** An email address at the start of a sentence is not capitalized. */
const capital = (text: string): string =>
  text.split(' ')[0]?.includes('@') ? text : text.charAt(0).toUpperCase() + text.slice(1)

const actorKinds: Record<Exclude<AuditEntry['actor_kind'], 'policy'>, string> = {
  person: 'User',
  shell: 'Command line',
  service_account: 'Service account',
  system: 'Postern',
}

export function actorOf(
  { actor_kind: kind, actor: { id, email } }: Pick<AuditEntry, 'actor_kind' | 'actor'>,
  names: Names,
): string {
  if (kind === 'policy') {
    const policy = names.policy(id)
    return policy === undefined ? `The policy ${id}` : `The policy “${policy}”`
  }
  const name = kind === 'person' ? (names.user(id) ?? email) : null
  return name ?? (id === 0 ? actorKinds[kind] : `${actorKinds[kind]} ${id}`)
}

/** Users who appear in the sentence but for whom the entry has only an id. */
export function usersIn({ actor_kind, actor, operation, after }: Entry): number[] {
  const owner = operation === 'projects.edit' ? after?.['user_id'] : undefined
  return [...(actor_kind === 'person' ? [actor.id] : []), ...(typeof owner === 'number' ? [owner] : [])]
}

const globalMail: Record<string, string> = {
  all: 'all mail',
  service: 'the mail of the shared mail servers',
  ses: 'the mail of Amazon SES',
}

function detailsOf(entry: Entry, names: Names): Details {
  const { resource_type: type, resource_id: id, project_id, subject } = entry
  const [was, is] = [entry.before ?? {}, entry.after ?? {}]
  const nameNow = project_id === null ? undefined : names.project(project_id)
  const nameThen = type === 'project' ? (was['name'] ?? is['name']) : undefined
  const project = words(nameThen ?? nameNow ?? `project ${project_id}`)
  return {
    was,
    is,
    changed: Object.keys(is).filter((field) => JSON.stringify(was[field]) !== JSON.stringify(is[field])),
    thing: `${kindOf(type)} ${words(was['name'] ?? is['name'] ?? id)}`,
    project,
    mail: project_id === null ? (globalMail[id] ?? `the mail of ${id}`) : `${project}'s mail`,
    person: subject?.email ?? `${kindOf(type)} ${id}`,
    names,
  }
}

type ProjectField = (pronouns: { it: string; its: string }, value: unknown, names: Names) => string

const projectFields: Record<string, ProjectField> = {
  is_locked: ({ it }, value) => `${value ? 'locked' : 'unlocked'} ${it}`,
  name: ({ it }, value) => `renamed ${it} to ${words(value)}`,
  user_id: ({ it }, value, names) =>
    `transferred ${it} to ${names.user(Number(value)) ?? `user ${words(value)}`}`,
  reputation_score: ({ its }, value) => `set ${its} score to ${words(value)}`,
  allow_service_mta: ({ it }, value) =>
    value ? `allowed shared mail servers for ${it}` : `disallowed shared mail servers for ${it}`,
  plan_id: ({ it }, value, names) => `moved ${it} to ${planOf(value, names)}`,
  admin_plan_id: ({ its }, value, names) =>
    value === null ? `removed ${its} plan override` : `overrode ${its} plan with ${planOf(value, names)}`,
  admin_subscription_status: ({ its }, value) =>
    value === null
      ? `removed ${its} subscription override`
      : `overrode ${its} subscription with ${words(value)}`,
}

function projectEdit({ project, changed, is, names }: Details): string {
  const edited = Object.entries(projectFields).filter(([field]) => changed.includes(field))
  const parts = edited.map(([field, phrase], index) => {
    const pronouns = index === 0 ? { it: project, its: `${project}'s` } : { it: 'it', its: 'its' }
    return phrase(pronouns, is[field], names)
  })
  return parts.length === 0 ? `edited ${project}` : listed(parts)
}

function domainEdit({ thing, project, was, is, changed }: Details): string {
  const parts = [
    ...(changed.includes('name') ? [`renamed ${thing} in ${project} to ${words(is['name'])}`] : []),
    ...(changed.includes('mta_provider')
      ? [
          `moved ${changed.includes('name') ? 'it' : `${thing} in ${project}`} from ${words(was['mta_provider'])} to ${words(is['mta_provider'])}`,
        ]
      : []),
  ]
  return parts.length === 0 ? `re-registered ${thing} in ${project}` : listed(parts)
}

/** For endpoints, routes, API keys, plans and policies. */
function configurationEdit({
  thing,
  project,
  is,
  changed,
}: Omit<Details, 'project'> & { project?: string }): string {
  const whole = project === undefined ? thing : `${thing} in ${project}`
  const [only] = changed
  if (changed.length === 1 && only === 'is_active')
    return `${is['is_active'] ? 'activated' : 'deactivated'} ${whole}`
  if (changed.length === 1 && only === 'name') return `renamed ${whole} to ${words(is['name'])}`
  return changed.length === 0 ? `edited ${whole}` : `changed the ${listed(changed.map(fieldOf))} of ${whole}`
}

/** An edit of the mode also resets the breaker. */
function policyEdit({ project: _, ...details }: Details): string {
  const { thing, was, is } = details
  const changed = details.changed.filter((field) => field !== 'tripped_at')
  if (changed.length === 0) return `reset the breaker of ${thing}`
  if (changed.length === 1 && changed[0] === 'mode')
    return `changed the mode of ${thing} from ${words(was['mode'])} to ${words(is['mode'])}`
  return configurationEdit({ ...details, changed })
}

function userEdit({ person, is, changed }: Details): string {
  const rights = is['rights'] === 'full' ? '' : ` with ${words(is['rights'])} rights`
  const parts = [
    ...(changed.includes('role')
      ? [
          is['role'] === 'admin'
            ? `made ${person} an administrator${rights}`
            : `removed the administrator role from ${person}`,
        ]
      : changed.includes('rights')
        ? [`gave ${person} ${words(is['rights'])} rights`]
        : []),
    ...(changed.includes('is_active')
      ? [is['is_active'] ? `enabled sign-in for ${person}` : `disabled sign-in for ${person}`]
      : []),
    ...(changed.includes('sessions') ? [`signed ${person} out of all sessions`] : []),
  ]
  return parts.length === 0 ? `signed ${person} out of all sessions` : listed(parts)
}

function routeOf({ was, is }: Details): string {
  const address = was['address'] ?? is['address']
  if (typeof address === 'string') return `the route for ${address}`
  return `the catch-all route for domain ${words(was['domain_id'] ?? is['domain_id'])}`
}

const planOf = (id: unknown, names: Names): string => `plan ${names.plan(Number(id)) ?? words(id)}`
const kindOf = (type: string): string => (type === 'api_key' ? 'API key' : type.replaceAll('_', ' '))
const fieldOf = (field: string): string => (field === 'is_active' ? 'state' : field.replaceAll('_', ' '))
/** The full name is on the entry's page. */
const maxLength = 80
const words = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  return text.length > maxLength ? `${text.slice(0, maxLength - 1).toWellFormed()}…` : text
}
const listed = (parts: string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
