import type { Activity } from '../../../api/operations.gen.ts'
import { counted } from '../../../components/numbers.ts'

/** Entries of a project's activity as sentences: "ada@example.com renamed the domain acme.example to acme.example.net". */

type State = Record<string, unknown>

interface Details {
  was: State
  is: State
  /** The fields that differ. */
  changed: string[]
  /** "endpoint Orders"; "endpoint 4" if the entry has no name. */
  thing: string
  /** The address that the entry is about. */
  address: string
}

/** The sentence without its subject. */
type Phrase = (details: Details) => string

const role = ({ role: its }: State) => String(its ?? 'member')

export const phrases: Record<string, Phrase> = {
  'projects.create': () => 'created the project',
  'projects.edit': ({ was, is }) => `renamed the project from ${was['name']} to ${is['name']}`,
  'projects.delete': () => 'deleted the project',
  'members.create': ({ address, is }) => `invited ${address} as ${role(is)}`,
  'members.edit': ({ address, was, is }) => `changed the role of ${address} from ${role(was)} to ${role(is)}`,
  'members.delete': ({ address }) => `removed ${address}`,
  'invitations.accept': ({ is }) => `joined the project as ${role(is)}`,
  'auth.register-invited': ({ is }) => `registered and joined the project as ${role(is)}`,
  'domains.create': ({ thing }) => `added the ${thing}`,
  'domains.edit': ({ thing, was, is, changed }) =>
    changed.includes('name') ? `renamed the domain ${was['name']} to ${is['name']}` : `edited the ${thing}`,
  'domains.delete': ({ thing }) => `deleted the ${thing}`,
  'domains.verify': ({ thing }) => `requested a DNS check for the ${thing}`,
  'domains.rotate': ({ thing }) => `rotated the DKIM key of the ${thing}`,
  'endpoints.create': ({ thing }) => `created the ${thing}`,
  'endpoints.edit': (details) => edited(details),
  'endpoints.delete': ({ thing }) => `deleted the ${thing}`,
  'endpoints.rotate': ({ thing }) => `rotated the secret of the ${thing}`,
  'endpoints.test': ({ thing }) => `sent a test event to the ${thing}`,
  'endpoints.replay': ({ thing }) => `replayed events to the ${thing}`,
  'routing.create': (details) => `created ${routeOf(details)}`,
  'routing.edit': (details) => `edited ${routeOf(details)}`,
  'routing.delete': (details) => `deleted ${routeOf(details)}`,
  'routing.request-confirmation': (details) => `resent the confirmation link for ${routeOf(details)}`,
  'api-keys.create': ({ thing }) => `created the ${thing}`,
  'api-keys.edit': (details) => edited(details),
  'api-keys.delete': ({ thing }) => `deleted the ${thing}`,
  'api-keys.rotate': ({ thing }) => `rotated the secret of the ${thing}`,
  'messages.cancel': () => 'canceled a scheduled message',
  'suppressions.create': ({ address }) => `suppressed ${address}`,
  'suppressions.delete': ({ address }) => `deleted the suppression of ${address}`,
  'suppressions.import': ({ is }) => `imported ${counted(Number(is['added'] ?? 0), 'suppression')}`,
  'notices.appeal': () => 'appealed against a notice',
}

function edited({ thing, changed, is, was }: Details): string {
  if (changed.length === 1 && changed[0] === 'is_active')
    return `${is['is_active'] ? 'activated' : 'deactivated'} the ${thing}`
  if (changed.length === 1 && changed[0] === 'name') return `renamed ${was['name']} to ${is['name']}`
  return `edited the ${thing}`
}

const routeOf = ({ was, is, thing }: Details): string => {
  const state = { ...was, ...is }
  if (typeof state['address'] === 'string') return `the route for ${state['address']}`
  return state['match'] === 'catch_all' ? 'a catch-all route' : `the ${thing}`
}

export function sentenceOf(entry: Activity, names: { keyOf: (id: number) => string | undefined }): string {
  const phrase = phrases[entry.operation]
  return `${actorOf(entry, names)} ${phrase ? phrase(detailsOf(entry)) : `performed ${entry.operation}`}`
}

function detailsOf({ before, after, resource_type, resource_id }: Activity): Details {
  const [was, is]: [State, State] = [before ?? {}, after ?? {}]
  const state = { ...was, ...is }
  const noun = resource_type === 'api_key' ? 'API key' : resource_type.replaceAll('_', ' ')
  const address = state['email'] ?? state['address']
  return {
    was,
    is,
    changed: Object.keys(state).filter((field) => JSON.stringify(was[field]) !== JSON.stringify(is[field])),
    thing: `${noun} ${typeof state['name'] === 'string' ? state['name'] : (resource_id ?? '')}`.trim(),
    address: typeof address === 'string' ? address : 'a person whose address was erased',
  }
}

function actorOf(
  { actor: { type, id, email } }: Activity,
  { keyOf }: { keyOf: (id: number) => string | undefined },
): string {
  if (type === 'user') return email ?? `User ${id}`
  if (type === 'api_key') return `API key ${(id !== null && keyOf(id)) || id}`
  return { administrator: 'An administrator', system: 'The system', unknown: 'Someone' }[type]
}
