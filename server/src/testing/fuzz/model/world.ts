/**
 * The expected state of the service according to independently written rules: nothing here imports the service's code.
 * Values that only the service can know (ids, times, secrets) are taken from the first response and must not change
 * afterwards.
 */
export type View = Record<string, unknown>

/** An expected audit row. */
export interface AuditedAct {
  operation: string
  type: string
  /** A resource whose id is not yet known, or the id. */
  of: number | string | Resource
  reason: string | null
  limit: LimitException | null
  before: View | null
  after: View | null
  requestId: string
}

export const idOf = ({ of }: AuditedAct): number | string => (typeof of === 'object' ? of.id : of)

export interface LimitException {
  limit: string
  value: number
  count: number
}

/** A resource with its version and its fields on the wire. */
export interface Resource {
  type: string
  id: number
  version: number
  view: View
}

/** A resource outside any project. Its audit rows are in the chain for resources without a project. */
export interface GlobalResource extends Resource {
  acts: AuditedAct[]
}

export const nouns = [
  'members',
  'endpoints',
  'domains',
  'routing',
  'api-keys',
  'interventions',
  'notes',
] as const
export type Noun = (typeof nouns)[number]

export interface Project extends GlobalResource {
  resources: Record<Noun, Resource[]>
  /** Ids of deleted resources. */
  deletedIds: Record<Noun, number[]>
  mail: Mail
  /** Endpoints for which the replay of a time range is in progress. */
  replaying: number[]
}

export interface Mail {
  /** Newest first. */
  messages: Message[]
  /** In list order. */
  suppressed: string[]
}

export interface Message {
  /** Status of the only recipient. */
  status: 'scheduled' | 'queued' | 'delivered' | 'bounced'
  address: string
  tag: string
  /** Empty until the first read. */
  view: View
}

export interface World {
  users: GlobalResource[]
  plans: GlobalResource[]
  projects: Project[]
  /** A string that appears only in this sequence's names and addresses. */
  mark: string
}

const ofEachNoun = <T>(make: () => T): Record<Noun, T> =>
  Object.fromEntries(nouns.map((noun) => [noun, make()])) as Record<Noun, T>

export const emptyProject = (): Pick<
  Project,
  'resources' | 'deletedIds' | 'acts' | 'mail' | 'replaying'
> => ({
  resources: ofEachNoun(() => []),
  deletedIds: ofEachNoun(() => []),
  acts: [],
  mail: { messages: [], suppressed: [] },
  replaying: [],
})

export const findById = <T extends { id: number }>(resources: readonly T[], id: unknown): T | undefined =>
  resources.find((resource) => resource.id === id)

/** The current plan: the administrator's override if there is one, otherwise the project's plan. */
export function planInForce(world: World, project: Pick<Resource, 'view'>): GlobalResource {
  const id = project.view['admin_plan_id'] ?? project.view['plan_id']
  const plan = findById(world.plans, id)
  if (!plan) throw new Error(`the model has no plan ${id}`)
  return plan
}

/** A project on the wire, which includes its current plan. */
export const projectOnWire = (world: World, project: Pick<Resource, 'view'>): View => ({
  ...project.view,
  plan: planInForce(world, project).view,
})
