/**
 * What the service should hold, kept beside it by rules of our own: nothing here is taken from the service's code.
 * What only the service can know (ids, times, secrets) is learnt from its first answer, and from then on it is held
 * to what it said.
 */
export type View = Record<string, unknown>

/** One row that the audit must hold, in the order of the acts. */
export interface AuditedAct {
  operation: string
  type: string
  id: number | string
  reason: string | null
  limit: LimitException | null
  before: View | null
  after: View | null
  requestId: string
}

export interface LimitException {
  limit: string
  value: number
  count: number
}

/** A resource: its version, and its fields as the wire shows them. */
export interface Thing {
  type: string
  id: number
  version: number
  view: View
}

/** Of no project: the audit keeps its acts in the chain of what belongs to none. */
export interface GlobalThing extends Thing {
  acts: AuditedAct[]
}

export const nouns = ['members', 'endpoints', 'domains', 'routing', 'api-keys'] as const
export type Noun = (typeof nouns)[number]

export interface Project extends GlobalThing {
  things: Record<Noun, Thing[]>
  /** Ids of what was deleted. */
  gone: Record<Noun, number[]>
  mail: Mail
  /** Endpoints to which a stretch of time is being replayed. */
  replaying: number[]
}

export interface Mail {
  /** Since when it is held; null: it is not. */
  heldAt: string | null
  /** Newest first. */
  messages: Message[]
  /** In their order. */
  suppressed: string[]
}

export interface Message {
  /** Of its one recipient, as it is kept. */
  status: 'scheduled' | 'queued' | 'delivered' | 'bounced'
  address: string
  tag: string
  /** Empty until it was looked at. */
  view: View
}

export interface World {
  users: GlobalThing[]
  plans: GlobalThing[]
  projects: Project[]
  /** A word that nothing outside of this world has in its names and addresses. */
  mark: string
}

export const emptyProject = (): Pick<Project, 'things' | 'gone' | 'acts' | 'mail' | 'replaying'> => ({
  things: { members: [], endpoints: [], domains: [], routing: [], 'api-keys': [] },
  gone: { members: [], endpoints: [], domains: [], routing: [], 'api-keys': [] },
  acts: [],
  mail: { heldAt: null, messages: [], suppressed: [] },
  replaying: [],
})

export const findById = <T extends { id: number }>(things: readonly T[], id: unknown): T | undefined =>
  things.find((thing) => thing.id === id)

/** The plan that is in force for a project: the administrator's, where there is one. */
export function planInForce(world: World, project: Pick<Thing, 'view'>): GlobalThing {
  const id = project.view['admin_plan_id'] ?? project.view['plan_id']
  const plan = findById(world.plans, id)
  if (!plan) throw new Error(`the model knows no plan ${id}`)
  return plan
}

/** A project as the wire shows it: with the plan in force. */
export const projectOnWire = (world: World, project: Pick<Thing, 'view'>): View => ({
  ...project.view,
  plan: planInForce(world, project).view,
})
