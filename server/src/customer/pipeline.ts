import { userOperation } from '../core/control/access/account-changes.ts'
import { recordProjectActivity, recordUserActivity } from '../core/control/activity/activity.ts'
import { publishActivity } from '../core/control/activity/relay.ts'
import { beyond, limitExceeded } from '../core/control/caps/caps.ts'
import type { OfferedKeyPair, WantedKeyPair } from '../core/control/domains/dkim-key-pool.ts'
import { countDkimKeys } from '../core/control/domains/dkim-keys.ts'
import { findTarget, IdempotentRequest } from '../core/control/idempotency/idempotency.ts'
import { lockProject } from '../core/control/projects/projects.ts'
import { IdempotentMailMutation } from '../core/mail/messages/idempotent-mutation.ts'
import { bindToDomain, type Db, type ReadTx, type Tx } from '../platform/db/db.ts'
import { type Kind, successOfKind } from '../platform/http/kinds.ts'
import { asResponse, type HttpResponse } from '../platform/http/response.ts'
import { etagOf, type IfMatch, requireVersion } from '../platform/http/versions.ts'
import { entryOf, type Requested } from './activity-entry.ts'
import { boundDomain, type Caller, confirmed, idempotencyActorOf, type UserCaller } from './caller.ts'
import { dkimKeysRemedy } from './limits.ts'
import { type CustomerDeps, type Mutation, type MutationResult, type Query, unchanged } from './operation.ts'
import { honoursIfMatch } from './schema.ts'

/**
 * Runs a customer's mutation, from its validated input to its response, in one transaction.
 *
 * In a project, the transaction locks the project first and then checks the caller again: a role or key that was revoked
 * while the request waited for the lock is no longer accepted. Checks in order: the project or the resource does not exist
 * (404), a stored response exists (idempotency), the version differs from If-Match (412), the rules.
 *
 * A change writes its activity row in the same transaction. For changes in the mail database, the row is published through
 * mail.outbox, because no transaction writes both schemas.
 */
export interface MutationRequest extends Requested {
  params: Record<string, unknown>
  body: Record<string, unknown>
  ifMatch: IfMatch | undefined
  idempotencyKey: string | undefined
}

/** The parts of a mutation that depend on `runsIn`. */
interface Transaction {
  db: Db
  repeatable: IdempotentRequest | IdempotentMailMutation | undefined
  /** The first statements: locks, and the second check of the caller. Returns the fields of the call. */
  enter(tx: Tx): Promise<{ caller: Caller | UserCaller; [field: string]: unknown }>
  record(tx: Tx, entry: ReturnType<typeof entryOf>, result: MutationResult<unknown>): Promise<void>
}

export async function perform(
  operation: Mutation,
  caller: Caller | UserCaller,
  request: MutationRequest,
  deps: CustomerDeps,
): Promise<HttpResponse> {
  requireCallerOf(operation, caller)
  const { params, body } = request
  const { db, repeatable, enter, record } = transactionOf(operation, caller, request, deps)
  const preloaded = await preloadOf(operation, caller, request, deps)
  const work = async (tx: Tx, pair: OfferedKeyPair): Promise<HttpResponse> => {
    await repeatable?.claim(tx)
    const entered = await enter(tx)
    const find = async () =>
      operation.target ? operation.target({ tx, params, ...entered } as never) : entered['project']
    const deleting =
      operation.kind === 'delete' && repeatable instanceof IdempotentRequest ? repeatable : undefined
    const found = await findTarget(find, tx, deleting)
    const before = found.deletion ?? (await repeatable?.findResponse(tx))
    if (before) return { ...before, isRepeated: true }
    const { target } = found
    if (honoursIfMatch(operation)) requireVersion(request.ifMatch, target as { version: number })

    const domains = { ...deps.domains, pair }
    const call = { ...entered, tx, deps, domains, params, body, target, preloaded }
    const result = await operation.run(call as never)
    const answer = answerOf(operation.kind, operation.answer !== undefined, result)
    await repeatable?.storeResponse(tx, operation.revealsSecret ? { ...answer, body: null } : answer)
    // Last, because the head of the activity chain stays locked until the commit.
    if (result.activity !== unchanged) {
      await record(tx, entryOf(operation.id, { ...request, caller: entered.caller }, result.activity), result)
    }
    return answer
  }
  const wanted =
    operation.makesDkimKey === true && 'projectId' in caller && (await wantedPair(caller.projectId, deps))
  return deps.domains.pairs.offer(wanted, (pair) => db.transaction((tx) => work(tx, pair)))
}

/** Authentication returns a caller of the operation's kind; another one is a programming error. */
function requireCallerOf({ id, runsIn }: Mutation | Query, caller: Caller | UserCaller): void {
  if ((runsIn === 'user') !== (caller.kind === 'user'))
    throw new Error(`${id} has a caller of the wrong kind`)
}

/** The project id of an Idempotency-Key outside any project. Real ids start at 1. */
const noProject = 0

function transactionOf(
  operation: Mutation,
  caller: Caller | UserCaller,
  { params, body, idempotencyKey: key }: MutationRequest,
  { customer, cellOf }: CustomerDeps,
): Transaction {
  const scope = { actor: idempotencyActorOf(caller), operation: operation.id }
  if (caller.kind === 'user') {
    const { user } = caller
    return {
      db: customer.forUser(user.id),
      repeatable:
        key === undefined
          ? undefined
          : new IdempotentRequest({ ...scope, projectId: noProject, key }, { body }),
      enter: async () => ({ caller, user }),
      async record(tx, entry, result) {
        await recordProjectActivity(tx, (result as unknown as { projectId: number }).projectId, entry)
        if (operation.isOfUser) {
          const ofUser = { ...entry, operation: userOperation(entry.operation) }
          await recordUserActivity(tx, user.id, ofUser)
        }
      },
    }
  }
  const { projectId } = caller
  if (operation.runsIn === 'mail') {
    return {
      db: cellOf(projectId).mail,
      repeatable:
        key === undefined
          ? undefined
          : new IdempotentMailMutation({ ...scope, projectId, key }, { params, body }),
      enter: async () => ({ caller, projectId, domainId: boundDomain(caller) }),
      record: (tx, entry) => publishActivity(tx, projectId, entry),
    }
  }
  return {
    db: customer.forProject(projectId),
    repeatable:
      key === undefined ? undefined : new IdempotentRequest({ ...scope, projectId, key }, { params, body }),
    enter: async (tx) => {
      const project = await lockProject(tx, projectId)
      return { project, ...(await confirmedAndBound(tx, operation.id, caller)) }
    },
    record: (tx, entry) => recordProjectActivity(tx, projectId, entry),
  }
}

async function preloadOf(
  { preload }: Mutation,
  caller: Caller | UserCaller,
  { params, body }: MutationRequest,
  { cellOf }: CustomerDeps,
): Promise<unknown> {
  if (!preload || !('projectId' in caller)) return undefined
  const { projectId } = caller
  return cellOf(projectId)
    .customer.forProject(projectId)
    .read((mail) => preload(mail, { projectId, params, body }))
}

/** No key pair is generated for a project that has used up its daily keys. In that case, `run` rejects the request. */
async function wantedPair(projectId: number, { customer, caps }: CustomerDeps): Promise<WantedKeyPair> {
  const made = await customer.forProject(projectId).read((tx) => countDkimKeys(tx, projectId))
  const exception = beyond('max_dkim_keys_per_day', caps.max_dkim_keys_per_day, made + 1)
  return { projectId, refusal: exception ? limitExceeded(exception, dkimKeysRemedy) : undefined }
}

/** Checks the caller again, and binds the transaction to the domain of the API key, if there is one. */
async function confirmedAndBound(
  tx: ReadTx,
  operation: Mutation['id'],
  caller: Caller,
): Promise<{ caller: Caller; domainId: number | null }> {
  const current = await confirmed(tx, operation, caller)
  const domainId = boundDomain(current)
  if (domainId !== null) await bindToDomain(tx, domainId)
  return { caller: current, domainId }
}

export async function answerQuery(
  operation: Query,
  caller: Caller | UserCaller,
  { params, query }: { params: Record<string, unknown>; query: Record<string, unknown> },
  deps: CustomerDeps,
): Promise<{ answer: unknown; version?: number }> {
  requireCallerOf(operation, caller)
  if (caller.kind === 'user') {
    const { user } = caller
    return deps.everywhere.read((tx) => operation.run({ tx, user, query }))
  }
  const { projectId } = caller
  const { preload } = operation
  const inCell = () => deps.cellOf(projectId).customer.forProject(projectId)
  const preloaded =
    preload && (await inCell().read((mail) => preload(mail, { projectId, deps, params, query })))
  const db = operation.runsIn === 'mail' ? inCell() : deps.customer.forProject(projectId)
  return db.read(async (tx) => {
    const authorised = await confirmedAndBound(tx, operation.id, caller)
    return operation.run({ tx, projectId, ...authorised, deps, params, query, preloaded })
  })
}

function answerOf(
  kind: Kind,
  hasBody: boolean,
  { answer, version, location }: MutationResult<unknown>,
): HttpResponse {
  const status = successOfKind[kind]
  return {
    ...(hasBody ? asResponse(status, answer) : { status, body: null }),
    etag: version === null ? null : etagOf(version),
    location: location ?? null,
  }
}
