import type { Readable } from 'node:stream'
import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { VerifyingKeys } from '../core/control/audit/keys.ts'
import type { Actor, Change } from '../core/control/audit/record.ts'
import type { Caps, LimitException } from '../core/control/caps/caps.ts'
import type { DomainDeps, KeyedDeps } from '../core/control/domains/domains.ts'
import type { EndpointDeps } from '../core/control/endpoints/endpoints.ts'
import type { EndpointCommandDeps } from '../core/control/endpoints/test-and-replay.ts'
import type { Backtest } from '../core/control/policies/wire.ts'
import type { Vault } from '../core/control/secrets/vault.ts'
import type { VerpKeys } from '../core/mail/feedback/match-bounce.ts'
import type { SendingRules } from '../core/mail/messages/sending-checks.ts'
import type { Report } from '../core/shared/address-import.ts'
import type { Cells } from '../platform/db/cells.ts'
import type { Db, ReadTx, Tx } from '../platform/db/db.ts'
import type { ErrorCode } from '../platform/errors.ts'
import type { Kind, Unversioned, Versioned } from '../platform/http/kinds.ts'
import type { BulkPreview } from './bulk/preview-wire.ts'
import type { OperationId } from './rights.ts'

/**
 * The two kinds of administrative operations: mutations and queries. An operation declares its schema and its logic;
 * pipeline.ts implements the common parts (authorisation, order of checks, versions, idempotency, dry run,
 * transaction, reason, audit row).
 *
 * A mutation's kind determines its HTTP behaviour (platform/http/kinds.ts); reason.ts determines when it needs a
 * reason.
 */
export interface AdminDeps {
  db: Db
  /** The database that holds a project's mail. */
  mailDbFor: (projectId: number) => Db
  /** All mail databases. */
  cells: Cells
  /** Verify the references to messages in return paths. */
  returnPathKeys: VerpKeys
  vault: Vault
  domains: DomainDeps
  endpoints: EndpointDeps
  endpointCommands: EndpointCommandDeps
  caps: Caps
  sendingRules: SendingRules
  /** Verifies the checkpoints of the audit log. */
  audit: { keys: VerifyingKeys; checkpointFile: string | undefined; isFileFirst?: boolean }
}

/**
 * Needed only for a dry run. A sentence that requires a query is written as a function and is called only for a dry
 * run.
 */
export type Sentences = readonly string[] | (() => Promise<readonly string[]>)

/** An edit that changes no field: the version stays the same and no audit row is written. */
export const unchanged = Symbol('unchanged')

export interface Audited {
  /** The project to whose chain the row is added, or null for resources outside projects. */
  projectId: number | null
  /** The stored state, without secrets and without the personal data in `subject`. */
  change: Change
  /** Other resources that changed. */
  related?: Change[]
  /** The limit that was exceeded. Requires a reason. */
  limitException?: LimitException | null
  /** The affected person, stored outside the chain so that it can be erased. */
  subject?: { email: string; name: string | null }
}

/** The result of `run`. The first three are required: a mutation without its audit row does not compile. */
export interface MutationResult<Answer> {
  audit: Audited | typeof unchanged
  effects: Sentences
  warnings: Sentences
  answer: Answer
  /**
   * The resource as the API returns it, if the audit records different fields. The preview compares the API's fields.
   */
  views?: { before: object | null; after: object | null }
  /** The result for each line of an import. Part of the preview. */
  report?: Report
  /** The current version of the resource; null if it was deleted. */
  version: number | null
  /** The path of the created resource, or of the resource that a secret belongs to. */
  location?: string
  /** Called after the audit row was written, with its id. */
  onAudited?: (auditId: number) => Promise<void>
  /** API names of the changed fields, if a changed field may require a reason (reason.ts). */
  changedFields?: readonly string[]
  /** Part of the preview: what a bulk action would do. */
  bulk?: Static<typeof BulkPreview> | undefined
}

interface Described {
  /** Noun first: `endpoints.rotate`. */
  id: OperationId
  /** Relative to /v1, in Fastify's syntax: `/admin/projects/:project_id`. */
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
  /** The result of `preload` or `prepare`. */
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
  /** Overrides the method of the kind: PUT for a complete replacement, DELETE for a deletion by the worker. */
  method?: 'PUT' | 'DELETE'
  params: TObject<Params>
  /** The fields of the body; `reason` is added to every body. */
  body: Body
  example: Record<string, unknown>
  /** Overrides the default body limit. */
  bodyLimitBytes?: number
  /** If absent, the response has no body. */
  answer?: Answer
  /** The response has no version and therefore no ETag. */
  hasVersion?: false
  /** The response to an `enqueue` names, in `Location`, a resource that shows the progress. */
  hasLocation?: true
  /** A body with missing fields is rejected with `incomplete_configuration`. The error names the missing fields. */
  isCompleteConfiguration?: true
  /** The response contains a secret. The secret is returned only once; a replayed response omits it. */
  revealsSecret?: true
  /**
   * The operation may generate a DKIM key. This is slow, so the key pair is generated before any lock is acquired
   * (core/control/domains/dkim-key-pool.ts).
   */
  makesDkimKey?: true
  /** Requires two-factor authentication within the last ten minutes, except for a dry run. */
  needsRecentSecondFactor?: true
  /** The operation's error codes in addition to those of its kind, for the OpenAPI document. */
  refusals?: readonly ErrorCode[]
  /**
   * Reads from the mail database before the transaction begins. Mail may be stored in a different database, and a
   * transaction never waits for another database. Does not check whether the project exists, and never rejects a
   * request.
   */
  preload?(
    mail: ReadTx,
    params: Static<TObject<Params>>,
    body: Static<TObject<Body>>,
    caps: Caps,
  ): Promise<Preloaded>
  /**
   * `preview`: preload only for a dry run. `detail`: for all requests. In both cases the operation works without the data:
   * when the mail database is unavailable or too slow, `preloaded` is undefined.
   */
  preloadFor?: 'preview' | 'detail'
  /** Instead of `preload`, for work that is too long for one transaction. It may reject the request. `target` cannot use it. */
  prepare?(
    deps: AdminDeps,
    call: { actor: Actor; requestId: string; body: Static<TObject<Body>>; isDryRun: boolean },
  ): Promise<Preloaded>
  /**
   * For policies: what the new configuration would have done in the past. Part of the preview, and read before the dry run's
   * transaction begins. Undefined if the policy does not exist, or if the change makes no difference.
   */
  backtest?(
    deps: Pick<AdminDeps, 'db' | 'mailDbFor'>,
    params: Static<TObject<Params>>,
    body: Static<TObject<Body>>,
  ): Promise<Static<typeof Backtest> | undefined>
  /**
   * Locks and returns the resource, or throws 404. This check comes first. For a create operation, the resource is
   * the parent.
   */
  target(tx: Tx, params: Static<TObject<Params>>, preloaded: NoInfer<Preloaded>): Promise<Target>
  run(
    call: MutationCall<Static<TObject<Params>>, Static<TObject<Body>>, Target, NoInfer<Preloaded>>,
  ): Promise<MutationResult<Answer extends TSchema ? Static<Answer> : null>>
}

export interface QueryCall<Params, Query, Body = unknown>
  extends Pick<
    AdminDeps,
    'db' | 'mailDbFor' | 'cells' | 'returnPathKeys' | 'audit' | 'caps' | 'sendingRules' | 'domains'
  > {
  /** Aborted when the caller disconnects. */
  signal: AbortSignal
  actorId: number
  requestId: string
  params: Params
  query: Query
  body: Body
}

export interface Query<
  Params extends TProperties = TProperties,
  Parameters extends TProperties = TProperties,
  Answer extends TSchema = TSchema,
  Body extends TProperties = TProperties,
> extends Described {
  params: TObject<Params>
  /** Query parameters; unknown parameters are rejected. */
  query: Parameters
  /**
   * For input that is too long for a URL. The operation is then a POST. It is still a read: it has no reason, audit row, dry
   * run, version or Idempotency-Key.
   */
  body?: { fields: Body; example: Record<string, unknown>; limitBytes: number }
  /** 202: a worker prepares what was requested. */
  status?: 202
  /** The operation's error codes for 422 in addition to `validation_failed`, for the OpenAPI document. */
  refusals?: readonly ErrorCode[]
  answer: Answer
  /** If absent, JSON. */
  contentType?: string
  /** The operation has no HEAD route, because a HEAD request would do as much work as a GET. */
  hasHead?: false
  /** The response is one resource, with its version in the ETag. */
  hasVersion?: true
  run(
    call: QueryCall<Static<TObject<Params>>, Static<TObject<Parameters>>, Static<TObject<Body>>>,
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
  // biome-ignore lint/complexity/noBannedTypes: the type of no fields.
  Body extends TProperties = {},
>(query: Query<Params, Parameters, Answer, Body>): Query {
  return query as unknown as Query
}

export const isMutation = (operation: Mutation | Query): operation is Mutation => 'kind' in operation
