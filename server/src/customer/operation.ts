import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { User } from '../core/control/access/verify-access-token.ts'
import type { ActivityChange } from '../core/control/activity/activity.ts'
import type { Caps } from '../core/control/caps/caps.ts'
import type { DomainDeps, KeyedDeps } from '../core/control/domains/domains.ts'
import type { EndpointDeps } from '../core/control/endpoints/endpoints.ts'
import type { EndpointCommandDeps } from '../core/control/endpoints/test-and-replay.ts'
import type { ProjectRow } from '../core/control/projects/projects.ts'
import type { Accepts } from '../core/mail/messages/acceptance.ts'
import type { SendingRules } from '../core/mail/messages/sending-checks.ts'
import type { Cell } from '../platform/db/cells.ts'
import type { CustomerDb, ReadTx, Tx, UnscopedDb } from '../platform/db/db.ts'
import type { ErrorCode } from '../platform/errors.ts'
import type { Kind, Unversioned, Versioned } from '../platform/http/kinds.ts'
import type { HttpResponse } from '../platform/http/response.ts'
import type { SpanContext } from '../platform/telemetry/tracing.ts'
import type { Caller } from './caller.ts'
import type { FaultOf } from './messages/request-mails.ts'
import type { OperationId } from './roles.ts'

/**
 * The kinds of customers' operations: mutations, queries, and the custom operations that send mail. An operation declares
 * its schema and its logic. roles.ts, scopes.ts and domain-bindings.ts determine who can call it. pipeline.ts implements the
 * common parts (the lock on the project, a second check of the caller under that lock, versions, idempotency, the
 * transaction, the activity row).
 *
 * `runsIn` selects the transaction of a mutation or query:
 *
 *   project   in the control database, restricted to one project (the default)
 *   mail      in the mail database, restricted to one project
 *   user      in the control database, outside any project, for the signed-in user
 */
export type RunsIn = 'project' | 'mail' | 'user'

export interface CustomerDeps {
  customer: CustomerDb
  /** Reads across projects. */
  everywhere: UnscopedDb
  /** The database that holds a project's mail. */
  cellOf: (projectId: number) => Pick<Cell, 'customer' | 'mail'>
  acceptance: Accepts
  domains: DomainDeps
  endpoints: EndpointDeps
  endpointCommands: EndpointCommandDeps
  caps: Caps
  sendingRules: SendingRules
  /** Projects that customers create. */
  newProjects: {
    /** Undefined if customers cannot create projects. */
    planId: number | undefined
    allowServiceMta: boolean
  }
}

interface Described {
  /** Noun first: `endpoints.rotate`. The administrators' operation has the same id. */
  id: OperationId
  /** Relative to /v1, in Fastify's syntax: `/projects/:project_id/domains/:id`. */
  path: string
  /** The path for API keys, such as `/messages`. API keys need not specify their project. Members use `path`. */
  pathOfKey?: string
  summary: string
  description: string
}

interface Bodied<Body extends TProperties> {
  /** The fields of the body. */
  body: Body
  example: Record<string, unknown>
  /** A body with missing fields is rejected with `incomplete_configuration`. The error names the missing fields. */
  isCompleteConfiguration?: true
  /** Overrides the default body limit. */
  bodyLimitBytes?: number
  /** The error codes of the operation's own rules, in addition to those of its kind. For the OpenAPI document. */
  refusals?: readonly ErrorCode[]
}

/** Returned instead of a change when nothing changed: no activity row is written. */
export const unchanged = 'unchanged'

export interface MutationResult<Answer> {
  answer: Answer
  /** The change as the project's activity records it, without secrets (core/control/activity). */
  activity: ActivityChange | typeof unchanged
  /** The current version of the resource, or null if the resource is deleted or has no version. */
  version: number | null
  /** The path of the created resource, or of the resource that a secret belongs to. */
  location?: string
}

/** The change made by an edit. An edit that returns the same row object has changed nothing. */
export const changeOf = <Row extends { id: number }>(
  resource: string,
  before: Row,
  after: Row,
  shown: (row: Row) => object,
): ActivityChange | typeof unchanged =>
  before === after ? unchanged : { resource, id: after.id, before: shown(before), after: shown(after) }

type AnswerOf<Answer> = Answer extends TSchema ? Static<Answer> : null

/** The caller, and the project for which the caller is authorised. */
interface Authorised {
  projectId: number
  /** The domain that the API key is bound to (domain-bindings.ts), or null. Other domains' resources are not found. */
  domainId: number | null
  caller: Caller
}

interface MutationCalls<Params, Body, Target, Preloaded> {
  project: Omit<Authorised, 'projectId'> & {
    tx: Tx
    deps: CustomerDeps
    domains: KeyedDeps
    /** Locked. */
    project: ProjectRow
    params: Params
    body: Body
    target: Target
    /** The result of `preload`. */
    preloaded: Preloaded
  }
  mail: Authorised & { tx: Tx; deps: CustomerDeps; params: Params; body: Body }
  user: { tx: Tx; deps: CustomerDeps; user: User; body: Body }
}

export interface Mutation<
  Params extends TProperties = TProperties,
  Body extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Target = unknown,
  Preloaded = unknown,
  In extends RunsIn = RunsIn,
> extends Described,
    Bodied<Body> {
  kind: Kind
  runsIn?: In
  /** The path parameters other than `project_id`. */
  params: TObject<Params>
  /** If absent, the response has no body. */
  answer?: Answer
  /** Describes the successful response. If absent, the sentence for the operation's kind is used. */
  means?: string
  /** The resource has no version, so the response has no ETag. */
  hasVersion?: false
  /** The response contains a secret. The secret is returned only once; a replayed response omits it. */
  revealsSecret?: true
  /**
   * The operation may generate a DKIM key. This is slow, so the key pair is generated before any lock is acquired
   * (core/control/domains/dkim-key-pool.ts).
   */
  makesDkimKey?: true
  /** The change is also recorded in the user's own activity. */
  isOfUser?: true
  /**
   * Reads from the mail database before the transaction begins. Mail may be stored in a different database, and a
   * transaction never waits for another database. This step never rejects a request.
   */
  preload?(
    mail: ReadTx,
    asked: { projectId: number; params: Static<TObject<Params>>; body: Static<TObject<Body>> },
  ): Promise<Preloaded>
  /** Locks and returns the target resource, or throws 404. If absent, the target is the project itself. */
  target?(
    call: Pick<
      MutationCalls<Static<TObject<Params>>, never, never, never>['project'],
      'tx' | 'project' | 'domainId' | 'params'
    >,
  ): Promise<Target>
  run(
    call: MutationCalls<Static<TObject<Params>>, Static<TObject<Body>>, Target, NoInfer<Preloaded>>[In],
  ): Promise<
    // An operation outside any project also returns the project that records its activity.
    MutationResult<AnswerOf<Answer>> & (In extends 'user' ? { projectId: number } : unknown)
  >
}

interface QueryCalls<Params, Query, Preloaded> {
  project: Authorised & {
    tx: ReadTx
    deps: CustomerDeps
    params: Params
    query: Query
    /** The result of `preload`. */
    preloaded: Preloaded
  }
  mail: QueryCalls<Params, Query, Preloaded>['project']
  user: { tx: ReadTx; user: User; query: Query }
}

export interface Query<
  Params extends TProperties = TProperties,
  Parameters extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Preloaded = unknown,
  In extends RunsIn = RunsIn,
> extends Described {
  runsIn?: In
  /** The path parameters other than `project_id`. */
  params: TObject<Params>
  /** Query parameters. Any other parameter is rejected. */
  query: Parameters
  answer: Answer
  /** Reads from the mail database before the transaction in the control database begins. */
  preload?(
    mail: ReadTx,
    asked: {
      projectId: number
      deps: CustomerDeps
      params: Static<TObject<Params>>
      query: Static<TObject<Parameters>>
    },
  ): Promise<Preloaded>
  /** The response is one resource, with its version in the ETag. */
  hasVersion?: true
  run(
    call: QueryCalls<Static<TObject<Params>>, Static<TObject<Parameters>>, NoInfer<Preloaded>>[In],
  ): Promise<{ answer: Static<Answer>; version?: number }>
}

/** An authenticated request. No transaction is open. */
export interface CustomCall<Params, Query, Body> extends Omit<Authorised, 'domainId'> {
  params: Params
  query: Query
  body: Body
  idempotencyKey: string | undefined
  requestId: string
  /** The request's span, if the request is traced. */
  trace: SpanContext | undefined
  ip: string
  /** Validates a part of the body that the operation's schema does not cover. Returns undefined if the part is valid. */
  faultOf: FaultOf
}

export interface CustomOperation<
  Params extends TProperties = TProperties,
  Parameters extends TProperties = TProperties,
  Body extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
> extends Described,
    Bodied<Body> {
  method: 'POST'
  success: { status: 202; means: string }
  params: TObject<Params>
  query: Parameters
  answer: Answer
  /** The reason that the operation writes no row to the project's activity. */
  leavesNoActivity: string
  /** Shown in the OpenAPI document instead of the fields that are validated. */
  documentedBody?: TProperties
  handle(
    call: CustomCall<Static<TObject<Params>>, Static<TObject<Parameters>>, Static<TObject<Body>>>,
    deps: CustomerDeps,
  ): Promise<HttpResponse>
}

export type CustomerOperation =
  | ({ shape: 'mutation' } & Mutation)
  | ({ shape: 'query' } & Query)
  | ({ shape: 'custom' } & CustomOperation)

type Shaped<Shape extends CustomerOperation['shape']> = Extract<CustomerOperation, { shape: Shape }>

/** Only operations on the control side of a project have versions, secrets, DKIM keys and a target to lock. */
type Restricted<In extends RunsIn> = In extends 'project'
  ? unknown
  : {
      kind: Unversioned | (In extends 'mail' ? 'delete' : never)
      target?: never
      revealsSecret?: never
      makesDkimKey?: never
    }

export function customerOperation<
  Params extends TProperties,
  Body extends TProperties,
  Answer extends TSchema,
  Target = ProjectRow,
  Preloaded = undefined,
  In extends RunsIn = 'project',
>(
  operation: Mutation<Params, Body, Answer, Target, Preloaded, In> &
    (
      | { kind: Unversioned }
      | { kind: Exclude<Kind, Unversioned>; target?(...args: never[]): Promise<Versioned<Target>> }
    ) &
    Restricted<In>,
): Shaped<'mutation'> {
  return { shape: 'mutation', ...operation } as unknown as Shaped<'mutation'>
}

export function customerQuery<
  Params extends TProperties,
  Parameters extends TProperties,
  Answer extends TSchema,
  Preloaded = undefined,
  In extends RunsIn = 'project',
>(query: Query<Params, Parameters, Answer, Preloaded, In>): Shaped<'query'> {
  return { shape: 'query', ...query } as unknown as Shaped<'query'>
}

/** An operation that handles the authenticated request itself. */
export function customOperation<
  Params extends TProperties,
  Parameters extends TProperties,
  Body extends TProperties,
  Answer extends TSchema,
>(operation: CustomOperation<Params, Parameters, Body, Answer>): Shaped<'custom'> {
  return { shape: 'custom', ...operation } as unknown as Shaped<'custom'>
}
