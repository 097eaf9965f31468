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
 * The two shapes of administrative operations: mutations and queries. An operation declares what it is and what it
 * does; pipeline.ts does what all of them share (authorisation, order of refusals, versions, idempotency, dry run,
 * transaction, reason, audit row).
 *
 * The kind of a mutation decides its HTTP behaviour (platform/http/kinds.ts); reason.ts decides when it needs a reason.
 */
export interface AdminDeps {
  db: Db
  /** The database that holds a project's mail. */
  mailDbFor: (projectId: number) => Db
  vault: Vault
  domains: DomainDeps
  endpoints: EndpointDeps
  endpointCommands: EndpointCommandDeps
  caps: Caps
  /** What the audit log's checkpoints are verified against. */
  audit: { keys: VerifyingKeys; checkpointFile: string | undefined; isFileFirst?: boolean }
}

/** Only a dry run needs these. Sentences that cost a query are functions, which only a dry run calls. */
export type Sentences = readonly string[] | (() => Promise<readonly string[]>)

/** An edit that changes nothing: no version moves, no audit row is written. */
export const unchanged = Symbol('unchanged')

export interface Audited {
  /** The project in whose chain the row goes; null for what belongs to none. */
  projectId: number | null
  /** As stored, without secrets, and without the personal data that `subject` holds. */
  change: Change
  /** Other resources that changed. */
  related?: Change[]
  /** The limit that was exceeded. Requires a reason. */
  limitException?: LimitException | null
  /** The person concerned, stored beside the chain and erasable. */
  subject?: { email: string; name: string | null }
}

/** The result of `run`. The first three are required: a mutation without its audit row does not compile. */
export interface MutationResult<Answer> {
  audit: Audited | typeof unchanged
  effects: Sentences
  warnings: Sentences
  answer: Answer
  /** The resource as the wire shows it, where the audit records other fields: the preview lists changes of these. */
  views?: { before: object | null; after: object | null }
  /** Of the resource as it is now; null when it is gone. */
  version: number | null
  /** The path of the created resource, or of the one that a secret belongs to. */
  location?: string
  /** The wire names of the fields that changed, where a changed field may require a reason (reason.ts). */
  changedFields?: readonly string[]
}

interface Described {
  /** Noun first: `endpoints.rotate`. */
  id: string
  /** Below /v1, in Fastify's spelling: `/admin/projects/:project_id`. */
  path: string
  summary: string
  description: string
}

export interface MutationCall<Params, Body, Target, Preloaded> {
  tx: Tx
  vault: Vault
  domains: KeyedDeps
  endpoints: EndpointDeps
  endpointCommands: EndpointCommandDeps
  caps: Caps
  actorId: number
  requestId: string
  params: Params
  body: Body
  target: Target
  /** What `preload` read. */
  preloaded: Preloaded
  reason: string | null
}

export interface Mutation<
  Params extends TProperties = TProperties,
  Body extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Target = unknown,
  Preloaded = unknown,
> extends Described {
  kind: Kind
  /** Overrides the kind's method: a complete replacement is a PUT, a deletion by the worker a DELETE. */
  method?: 'PUT' | 'DELETE'
  params: TObject<Params>
  /** The fields of the body; `reason` is added to every body. */
  body: Body
  example: Record<string, unknown>
  /** Overrides the ordinary body limit. */
  bodyLimitBytes?: number
  /** Absent: the answer is empty. */
  answer?: Answer
  /** The answer has no version, so it has no ETag. */
  hasVersion?: false
  /** A body that lacks fields is `incomplete_configuration`, naming them. */
  isCompleteConfiguration?: true
  /** The answer contains a secret, which is returned once; a replayed answer does not contain it. */
  revealsSecret?: true
  /** It may generate a DKIM key, which is slow: the pair is generated before any lock (core/control/domains/dkim-key-pool.ts). */
  makesDkimKey?: true
  /** The error codes of its own rules, besides those of its kind. For the OpenAPI document. */
  refusals?: readonly ErrorCode[]
  /**
   * Reads from the mail side before the transaction begins: mail may be in another database, and no transaction waits
   * for another database. It does not check whether the project exists and refuses no request.
   */
  preload?(mail: ReadTx, params: Static<TObject<Params>>, body: Static<TObject<Body>>): Promise<Preloaded>
  /** Only a dry run preloads. `preloaded` is undefined otherwise, and when the mail side is unavailable. */
  preloadFor?: 'preview'
  /** Locks and returns the resource acted upon, or throws 404; the first check of all. For a create: the parent. */
  target(tx: Tx, params: Static<TObject<Params>>, preloaded: NoInfer<Preloaded>): Promise<Target>
  run(
    call: MutationCall<Static<TObject<Params>>, Static<TObject<Body>>, Target, NoInfer<Preloaded>>,
  ): Promise<MutationResult<Answer extends TSchema ? Static<Answer> : null>>
}

export interface QueryCall<Params, Query> extends Pick<AdminDeps, 'db' | 'mailDbFor' | 'audit' | 'caps'> {
  /** Aborted when the caller disconnects. */
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
  /** Query parameters; others are refused. */
  query: Parameters
  answer: Answer
  /** Absent: JSON. */
  contentType?: string
  /** No HEAD route, where HEAD would do all the work of a GET. */
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
  Preloaded = undefined,
>(
  operation: Mutation<Params, Body, Answer, Target, Preloaded> &
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
