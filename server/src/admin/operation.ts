import type { Readable } from 'node:stream'
import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { VerifyingKeys } from '../core/control/audit/keys.ts'
import type { Change } from '../core/control/audit/record.ts'
import type { Caps, LimitException } from '../core/control/caps/caps.ts'
import type { DomainDeps, KeyedDeps } from '../core/control/domains/domains.ts'
import type { EndpointDeps } from '../core/control/endpoints/endpoints.ts'
import type { EndpointCommandDeps } from '../core/control/endpoints/test-and-replay.ts'
import type { Vault } from '../core/control/secrets/vault.ts'
import type { Db, ReadTx, Tx } from '../platform/db/db.ts'
import type { ErrorCode } from '../platform/errors.ts'
import type { Kind, Unversioned, Versioned } from '../platform/http/kinds.ts'

/**
 * The two shapes of the administrative plane. An operation says what it is and what it does; everything that
 * holds for all of them (who may call, what is refused in which order, versions, repetition, preview, the
 * transaction, the reason, the audit row) is done once, in pipeline.ts.
 *
 * The kind of a mutation decides the rest of its manners (platform/http/kinds.ts), and when it needs a reason: a
 * create beyond a limit, an edit where `run` asks for it, a rotation and a deletion always, an `ask` and
 * what is enqueued never, because they change no configuration; and whatever says `reason: 'always'`.
 */
export interface AdminDeps {
  db: Db
  /** Where the mail of a project is read. */
  mailOf: (projectId: number) => Db
  vault: Vault
  domains: DomainDeps
  endpoints: EndpointDeps
  orders: EndpointCommandDeps
  caps: Caps
  /** What the audit's checkpoints are checked against. */
  audit: { keys: VerifyingKeys; checkpointFile: string | undefined; isFileFirst?: boolean }
}

/** `dry_run` alone needs these; where they cost a query they are functions, and only a dry run calls them. */
export type Sentences = readonly string[] | (() => Promise<readonly string[]>)

/** An edit that changes nothing: no version moves, no audit row is written. */
export const unchanged = Symbol('unchanged')

export interface Audited {
  /** The project in whose chain the row goes; null for what belongs to none. */
  projectId: number | null
  /** As stored, without secrets, and without the personal data that `subject` holds. */
  change: Change
  /** What else the act changed. */
  related?: Change[]
  /** The limit that was gone past. Needs a reason. */
  limitException?: LimitException | null
  /** The person acted upon, kept beside the chain and erasable. */
  subject?: { email: string; name: string | null }
}

/** What `run` must tell. None of the first three can be left out: an act without its audit row does not compile. */
export interface MutationResult<Answer> {
  audit: Audited | typeof unchanged
  effects: Sentences
  warnings: Sentences
  answer: Answer
  /** Of the resource as it is now; null when it is gone. */
  version: number | null
  /** Where a created thing is, or the thing a secret belongs to. */
  location?: string
  /** Fields whose change needs a reason, as the caller spells them. */
  reasonNeededFor?: readonly string[]
}

interface Described {
  /** Noun first: `endpoints.rotate`. The word to search for. */
  id: string
  /** Below /v1, in Fastify's spelling: `/admin/projects/:project_id`. */
  path: string
  summary: string
  description: string
}

export interface MutationCall<Params, Body, Target, Seen> {
  tx: Tx
  vault: Vault
  domains: KeyedDeps
  endpoints: EndpointDeps
  orders: EndpointCommandDeps
  caps: Caps
  actorId: number
  requestId: string
  params: Params
  body: Body
  target: Target
  /** What `look` saw. */
  seen: Seen
  reason: string | null
}

export interface Mutation<
  Params extends TProperties = TProperties,
  Body extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Target = unknown,
  Seen = unknown,
> extends Described {
  kind: Kind
  /** Where it is not the kind's own: a complete replacement is a PUT, what a worker deletes afterwards a DELETE. */
  method?: 'PUT' | 'DELETE'
  params: TObject<Params>
  /** The fields of the body; `reason` is added to every one. */
  body: Body
  example: Record<string, unknown>
  /** Where the body may be larger than others. */
  bodyLimitBytes?: number
  /** Absent: the answer is empty. */
  answer?: Answer
  /** The answer is of something that has no version, so there is no ETag. */
  hasVersion?: false
  reason?: 'always'
  /** A body that lacks fields is `incomplete_configuration`, naming them. */
  isCompleteConfiguration?: true
  /** The answer holds a secret: it is told once, and a repetition does not tell it again. */
  revealsSecret?: true
  /** It may make a DKIM key, which takes long: the pair is made before anything is locked (core/control/domains/dkim-key-pool.ts). */
  makesDkimKey?: true
  /** The codes by which its own rules refuse, besides those that its kind brings along. For the document. */
  refusals?: readonly ErrorCode[]
  /**
   * What the mail plane knows of the project, asked before the transaction begins: mail may be in another database, and
   * no transaction waits for one. It says nothing of whether there is such a project, and refuses nobody.
   */
  look?(mail: ReadTx, params: Static<TObject<Params>>, body: Static<TObject<Body>>): Promise<Seen>
  /** A preview alone has to know. Nothing is seen otherwise, nor when the mail plane cannot answer. */
  looksFor?: 'preview'
  /** What is acted upon, locked, or 404: looked up before anything else is said about it. A create's is its parent. */
  target(tx: Tx, params: Static<TObject<Params>>, seen: NoInfer<Seen>): Promise<Target>
  run(
    call: MutationCall<Static<TObject<Params>>, Static<TObject<Body>>, Target, NoInfer<Seen>>,
  ): Promise<MutationResult<Answer extends TSchema ? Static<Answer> : null>>
}

export interface QueryCall<Params, Query> extends Pick<AdminDeps, 'db' | 'mailOf' | 'audit' | 'caps'> {
  /** Aborted when the caller hangs up. */
  signal: AbortSignal
  params: Params
  query: Query
}

export interface Query<
  Params extends TProperties = TProperties,
  Parameters extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
> extends Described {
  params: TObject<Params>
  /** Query parameters; any other is refused. */
  query: Parameters
  answer: Answer
  /** Absent: JSON. */
  contentType?: string
  /** There is no HEAD where it would do all the work of a GET for nothing. */
  hasHead?: false
  /** The answer is one resource, with its version in the ETag. */
  hasVersion?: true
  run(
    call: QueryCall<Static<TObject<Params>>, Static<TObject<Parameters>>>,
  ): Promise<{ answer: Static<Answer>; version?: number } | { stream: Readable }>
}

export function adminOperation<
  Params extends TProperties,
  Body extends TProperties,
  Answer extends TSchema,
  Target,
  Seen = undefined,
>(
  operation: Mutation<Params, Body, Answer, Target, Seen> &
    (
      | { kind: Unversioned }
      | { kind: Exclude<Kind, Unversioned>; target(...args: never[]): Promise<Versioned<Target>> }
    ),
): Mutation {
  return operation as unknown as Mutation
}

export function adminQuery<
  Params extends TProperties,
  Parameters extends TProperties,
  Answer extends TSchema,
>(query: Query<Params, Parameters, Answer>): Query {
  return query as unknown as Query
}

export const isMutation = (operation: Mutation | Query): operation is Mutation => 'kind' in operation
