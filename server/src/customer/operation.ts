import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { User } from '../core/control/access/verify-access-token.ts'
import type { ActivityChange } from '../core/control/activity/activity.ts'
import { publishActivity } from '../core/control/activity/relay.ts'
import type { Caps } from '../core/control/caps/caps.ts'
import type { DomainDeps, KeyedDeps } from '../core/control/domains/domains.ts'
import type { EndpointDeps } from '../core/control/endpoints/endpoints.ts'
import type { EndpointCommandDeps } from '../core/control/endpoints/test-and-replay.ts'
import type { ProjectRow } from '../core/control/projects/projects.ts'
import type { Accepts } from '../core/mail/messages/acceptance.ts'
import { IdempotentMailRequest } from '../core/mail/messages/idempotent-mutation.ts'
import type { Cell } from '../platform/db/cells.ts'
import type { CustomerDb, ReadTx, Tx, UnscopedDb } from '../platform/db/db.ts'
import type { ErrorCode } from '../platform/errors.ts'
import type { Kind, Unversioned, Versioned } from '../platform/http/kinds.ts'
import type { HttpResponse as HttpAnswer } from '../platform/http/response.ts'
import type { SpanContext } from '../platform/telemetry/tracing.ts'
import { entryOf } from './activity-entry.ts'
import { type Caller, idempotencyActorOf } from './caller.ts'
import type { FaultOf } from './messages/request-mails.ts'
import type { OperationId } from './roles.ts'

/**
 * The shapes of the customers' plane. An operation says what it is and what it does; who may call it is in roles.ts and
 * scopes.ts, and everything that holds for all of them (the door, the project's lock, the caller looked at once more
 * behind it, versions, repetition, the transaction) is done once, in pipeline.ts.
 *
 *   customerOperation  changes something of a project, in one transaction of that project's
 *   customerQuery      reads something of a project
 *   mailOperation      changes something of a project where its mail is, in one transaction of the mail side
 *   customOperation       is let in by the same door, and brings its own handling
 *   userOperation      what a signed-in user does outside of every project
 *   userQuery          what a signed-in user reads across projects
 */
export interface CustomerDeps {
  customer: CustomerDb
  /** Reads across projects. */
  everywhere: UnscopedDb
  /** Where the mail of a project is. */
  cellOf: (projectId: number) => Pick<Cell, 'customer' | 'mail'>
  acceptance: Accepts
  domains: DomainDeps
  endpoints: EndpointDeps
  endpointCommands: EndpointCommandDeps
  caps: Caps
  /** The plan of projects that customers make themselves; undefined: they make none. */
  planId: number | undefined
}

interface Described {
  /** Noun first: `endpoints.rotate`. The word to search for; the same as that of the administrators. */
  id: OperationId
  /** Below /v1, in Fastify's spelling: `/projects/:project_id/domains/:id`. */
  path: string
  /** Where a key reaches it without naming its project: `/messages`. Members have the other one. */
  pathOfKey?: string
  summary: string
  description: string
}

interface Bodied<Body extends TProperties> {
  /** The fields of the body. */
  body: Body
  example: Record<string, unknown>
  /** A body that lacks fields is `incomplete_configuration`, naming them. */
  isCompleteConfiguration?: true
  /** Where the body may be larger than others. */
  bodyLimitBytes?: number
  /** The codes by which its own rules refuse, besides those that its kind brings along. For the document. */
  refusals?: readonly ErrorCode[]
}

/** Said in place of a change: everything is as it was, so the project's activity gets no row. */
export const unchanged = 'unchanged'

export interface MutationResult<Answer> {
  answer: Answer
  /** What the project's activity keeps of it, without secrets (core/control/activity). */
  activity: ActivityChange | typeof unchanged
  /** Of the resource as it is now; null when it is gone. */
  version: number | null
  /** Where a created thing is, or the thing a secret belongs to. */
  location?: string
}

/** What an edit has changed; a row that is the very one from before was not edited. */
export const changeOf = <Row extends { id: number }>(
  resource: string,
  before: Row,
  after: Row,
  shown: (row: Row) => object,
): ActivityChange | typeof unchanged =>
  before === after ? unchanged : { resource, id: after.id, before: shown(before), after: shown(after) }

type AnswerOf<Answer> = Answer extends TSchema ? Static<Answer> : null

export interface MutationCall<Params, Body, Target, Preloaded> {
  tx: Tx
  /** Locked. */
  project: ProjectRow
  /** The one that the caller is bound to (domain-bindings.ts); null: none. Nothing of another one is found. */
  domainId: number | null
  caller: Caller
  deps: CustomerDeps
  domains: KeyedDeps
  params: Params
  body: Body
  target: Target
  /** What `preload` read. */
  preloaded: Preloaded
}

export interface Mutation<
  Params extends TProperties = TProperties,
  Body extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Target = unknown,
  Preloaded = unknown,
> extends Described,
    Bodied<Body> {
  kind: Kind
  /** Those of the path besides `project_id`. */
  params: TObject<Params>
  /** Absent: the answer is empty. */
  answer?: Answer
  /** The answer holds a secret: it is told once, and a repetition does not tell it again. */
  revealsSecret?: true
  /** It may make a DKIM key, which takes long: the pair is made before anything is locked (core/control/domains/dkim-key-pool.ts). */
  makesDkimKey?: true
  /**
   * What the mail plane knows of the project, asked before the transaction begins: mail may be in another database, and
   * no transaction waits for one. It refuses nobody.
   */
  preload?(
    mail: ReadTx,
    asked: { projectId: number; params: Static<TObject<Params>>; body: Static<TObject<Body>> },
  ): Promise<Preloaded>
  /** What is acted upon, locked, or 404. Absent: the project itself. */
  target?(
    call: Pick<
      MutationCall<Static<TObject<Params>>, never, never, never>,
      'tx' | 'project' | 'domainId' | 'params'
    >,
  ): Promise<Target>
  run(
    call: MutationCall<Static<TObject<Params>>, Static<TObject<Body>>, Target, NoInfer<Preloaded>>,
  ): Promise<MutationResult<AnswerOf<Answer>>>
}

export interface QueryCall<Params, Query, Preloaded> {
  tx: ReadTx
  projectId: number
  /** As for mutations. */
  domainId: number | null
  caller: Caller
  deps: CustomerDeps
  params: Params
  query: Query
  /** What `preload` read. */
  preloaded: Preloaded
}

export interface Query<
  Params extends TProperties = TProperties,
  Parameters extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Preloaded = unknown,
> extends Described {
  /** Those of the path besides `project_id`. */
  params: TObject<Params>
  /** Query parameters; any other is refused. */
  query: Parameters
  answer: Answer
  /** It is about mail, and read where that is. */
  reads?: 'mail'
  /** Of a query that reads control and also needs what the project's mail tells: asked before the transaction begins. */
  preload?(mail: ReadTx, projectId: number, deps: CustomerDeps): Promise<Preloaded>
  /** The answer is one resource, with its version in the ETag. */
  hasVersion?: true
  run(
    call: QueryCall<Static<TObject<Params>>, Static<TObject<Parameters>>, NoInfer<Preloaded>>,
  ): Promise<{ answer: Static<Answer>; version?: number }>
}

/** By the door alone: who calls was looked up a moment ago, and no transaction is open. */
export interface CustomCall<Params, Query, Body> {
  caller: Caller
  projectId: number
  /** As for mutations. */
  domainId: number | null
  params: Params
  query: Query
  body: Body
  idempotencyKey: string | undefined
  requestId: string
  /** The request's span, where it is recorded. */
  trace: SpanContext | undefined
  ip: string
  userAgent: string | null
  /** Aborted when the caller hangs up. */
  signal: AbortSignal
  /** What is wrong with a part of the body that the operation's own schema leaves open; undefined: nothing. */
  faultOf: FaultOf
}

export interface CustomOperation<
  Params extends TProperties = TProperties,
  Parameters extends TProperties = TProperties,
  Body extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
> extends Described,
    Bodied<Body> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  success: { status: 200 | 201 | 202 | 204; means: string }
  params: TObject<Params>
  query: Parameters
  /** Absent: the answer is empty. */
  answer?: Answer
  /** Of a request that changes something: why it has no row in the project's activity. */
  leavesNoActivity?: string
  /** What the document shows in place of the fields that are checked. */
  documentedBody?: TProperties
  handle(
    call: CustomCall<Static<TObject<Params>>, Static<TObject<Parameters>>, Static<TObject<Body>>>,
    deps: CustomerDeps,
  ): Promise<HttpAnswer>
}

export interface UserMutation<Body extends TProperties = TProperties, Answer extends TSchema = TSchema>
  extends Omit<Described, 'pathOfKey'>,
    Bodied<Body> {
  kind: 'create' | 'command'
  answer: Answer
  /** The user's own activity gets the row, too. */
  isOfUser?: true
  run(call: {
    tx: Tx
    user: User
    deps: CustomerDeps
    body: Static<TObject<Body>>
  }): Promise<MutationResult<Static<Answer>> & { projectId: number }>
}

export interface UserQuery<Parameters extends TProperties = TProperties, Answer extends TSchema = TSchema>
  extends Omit<Described, 'pathOfKey'> {
  query: Parameters
  answer: Answer
  run(call: {
    tx: ReadTx
    user: User
    query: Static<TObject<Parameters>>
  }): Promise<{ answer: Static<Answer> }>
}

export type CustomerOperation =
  | ({ shape: 'mutation' } & Mutation)
  | ({ shape: 'query' } & Query)
  | ({ shape: 'custom' } & CustomOperation)
  | ({ shape: 'user mutation' } & UserMutation)
  | ({ shape: 'user query' } & UserQuery)

type Shaped<Shape extends CustomerOperation['shape']> = Extract<CustomerOperation, { shape: Shape }>

export function customerOperation<
  Params extends TProperties,
  Body extends TProperties,
  Answer extends TSchema,
  Target = ProjectRow,
  Preloaded = undefined,
>(
  operation: Mutation<Params, Body, Answer, Target, Preloaded> &
    (
      | { kind: Unversioned }
      | { kind: Exclude<Kind, Unversioned>; target?(...args: never[]): Promise<Versioned<Target>> }
    ),
): Shaped<'mutation'> {
  return { shape: 'mutation', ...operation } as unknown as Shaped<'mutation'>
}

export function customerQuery<
  Params extends TProperties,
  Parameters extends TProperties,
  Answer extends TSchema,
  Preloaded = undefined,
>(query: Query<Params, Parameters, Answer, Preloaded>): Shaped<'query'> {
  return { shape: 'query', ...query } as unknown as Shaped<'query'>
}

/** It says why it leaves no activity, unless it only reads: what writes in one transaction is a `mailOperation`. */
export function customOperation<
  Params extends TProperties,
  Parameters extends TProperties,
  Body extends TProperties,
  Answer extends TSchema,
>(
  operation: CustomOperation<Params, Parameters, Body, Answer> &
    ({ method: 'GET' } | { leavesNoActivity: string }),
): Shaped<'custom'> {
  return { shape: 'custom', ...operation } as unknown as Shaped<'custom'>
}

/**
 * What is done where the project's mail is. No transaction writes both schemas, so the row of the project's activity is
 * relayed: `mail.outbox` has it in the transaction of the act.
 */
export function mailOperation<
  Params extends TProperties,
  Parameters extends TProperties,
  Body extends TProperties,
  Answer extends TSchema,
>({
  run,
  ...operation
}: Omit<CustomOperation<Params, Parameters, Body, Answer>, 'handle' | 'leavesNoActivity'> & {
  run(
    call: CustomCall<Static<TObject<Params>>, Static<TObject<Parameters>>, Static<TObject<Body>>> & {
      tx: Tx
    },
    deps: CustomerDeps,
  ): Promise<{ answer: HttpAnswer; activity: ActivityChange | typeof unchanged }>
}): Shaped<'custom'> {
  const own: CustomOperation<Params, Parameters, Body, Answer> = {
    ...operation,
    handle: (call, deps) =>
      deps.cellOf(call.projectId).mail.transaction(async (tx) => {
        const repeatable = idempotentRequest(operation.id, call)
        const before = await repeatable?.claim(tx)
        if (before) return { ...before, isRepeated: true }
        const { answer, activity } = await run({ ...call, tx }, deps)
        await repeatable?.remember(tx, answer)
        if (activity !== unchanged)
          await publishActivity(tx, call.projectId, entryOf(operation.id, call, activity))
        return answer
      }),
  }
  return { shape: 'custom', ...own } as unknown as Shaped<'custom'>
}

function idempotentRequest(
  operation: string,
  { caller, projectId, idempotencyKey: key, params, body }: CustomCall<unknown, unknown, unknown>,
): IdempotentMailRequest<HttpAnswer> | undefined {
  if (key === undefined) return undefined
  const actor = idempotencyActorOf(caller)
  return new IdempotentMailRequest({ projectId, actor, operation, key }, { params, body })
}

export function userOperation<Body extends TProperties, Answer extends TSchema>(
  operation: UserMutation<Body, Answer>,
): Shaped<'user mutation'> {
  return { shape: 'user mutation', ...operation } as unknown as Shaped<'user mutation'>
}

export function userQuery<Parameters extends TProperties, Answer extends TSchema>(
  query: UserQuery<Parameters, Answer>,
): Shaped<'user query'> {
  return { shape: 'user query', ...query } as unknown as Shaped<'user query'>
}
