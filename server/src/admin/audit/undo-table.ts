import { apiKeyConfig } from '../../core/control/api-keys/api-keys.ts'
import { endpointConfig } from '../../core/control/endpoints/endpoints.ts'
import { memberConfig } from '../../core/control/members/members.ts'
import { planConfig } from '../../core/control/plans/plans.ts'
import { projectRecord } from '../../core/control/projects/projects.ts'
import { routeConfig } from '../../core/control/routes/routes.ts'
import { editApiKeyOperation } from '../api-keys/edit-api-key.ts'
import { editEndpointOperation } from '../endpoints/edit-endpoint.ts'
import { editMemberOperation } from '../members/edit-member.ts'
import type { Mutation } from '../operation.ts'
import { editPlanOperation } from '../plans/edit-plan.ts'
import { editProjectOperation } from '../projects/edit-project.ts'
import { editRouteOperation } from '../routing/edit-route.ts'

/**
 * Which audited operations can be undone. An undo is another edit of the resource, with the previous values, so the rules of
 * the edit apply. Every audited operation is in one of the two tables; a test compares them with the list of operations.
 */
export interface ReversibleEdit {
  /** The operation that the undo performs. */
  edit: Mutation
  resource: string
  /** The fields of the resource as the audit log records them. */
  recordOf(target: unknown): object
}

function reversible<Row>(edit: Mutation, resource: string, recordOf: (row: Row) => object): ReversibleEdit {
  return { edit, resource, recordOf: recordOf as (target: unknown) => object }
}

export const reversibleEdits: readonly ReversibleEdit[] = [
  reversible(editProjectOperation, 'project', projectRecord),
  reversible(editPlanOperation, 'plan', planConfig),
  reversible(editEndpointOperation, 'endpoint', endpointConfig),
  reversible(editRouteOperation, 'route', routeConfig),
  reversible(editApiKeyOperation, 'api_key', apiKeyConfig),
  reversible(editMemberOperation, 'member', memberConfig),
]

const created = 'It created a resource. Delete the resource instead, if it can be deleted.'
const deleted = 'It deleted a resource, whose id and secrets cannot be restored. Create a new one instead.'
const rotated = 'It replaced a secret or a key, and the previous one cannot be restored.'
const performed = 'It caused an action that has already happened.'
const restricted = 'It changed an intervention. Edit it, end it or start another one instead.'
const ended = 'It ended an intervention. Start another one instead.'
const suppressed = 'It suppressed an address. Delete the suppression instead.'
const unsuppressed = 'It deleted a suppression. Suppress the address again instead.'
const imported = 'It suppressed a list of addresses. Delete their suppressions instead.'
const automatic = 'Postern made this change because a time or a limit was reached.'
const command = 'It was made by a command on the server. Use the command to change it again.'

/** Why an operation cannot be undone. */
export const irreversible: Readonly<Record<string, string>> = {
  'api-keys.create': created,
  'api-keys.delete': deleted,
  'api-keys.rotate': rotated,
  'audit.erase': 'Erased personal data cannot be restored.',
  'bulk.create': 'It started a bulk action. Undo the changes of the single projects instead.',
  'bulk.interrupt': automatic,
  'bulk.resume': performed,
  'bulk.stop': 'It stopped a bulk action. Resume it instead.',
  'discards.resume': performed,
  'discards.stop': 'It stopped a job. Resume the job instead.',
  'domains.create': created,
  'domains.delete': deleted,
  'domains.edit':
    'It registered a new identity, and the keys of the previous one cannot be restored. Edit the domain again instead.',
  'domains.rotate': rotated,
  'domains.verify': performed,
  'endpoints.create': created,
  'endpoints.delete': deleted,
  'endpoints.replay': performed,
  'endpoints.rotate': rotated,
  'endpoints.test': performed,
  'interventions.create': restricted,
  'interventions.drain': automatic,
  'interventions.edit': restricted,
  'interventions.end': ended,
  'interventions.expire': automatic,
  'members.create': created,
  'members.delete': deleted,
  'messages.cancel': 'Canceled mail cannot be sent any more. The customer can send it again.',
  'notes.create': created,
  'notes.delete': deleted,
  'notes.edit': 'It changed a note. Edit the note again instead.',
  'plans.create': 'It created a plan, and plans cannot be deleted. Deactivate the plan instead.',
  'platform-suppressions.create': suppressed,
  'platform-suppressions.delete': unsuppressed,
  'platform-suppressions.import': imported,
  'policies.create': created,
  'policies.delete': deleted,
  'policies.edit':
    'It changed a policy, which may have acted since. Edit the policy again instead: its preview has a backtest.',
  'policies.trip': automatic,
  'projects.create': 'It created a project, and projects cannot be deleted.',
  'projects.revert': automatic,
  'projects.set-billing': 'It recorded what the billing system reported. The next report overwrites it.',
  'queue.discard': 'Discarded mail cannot be sent any more.',
  'queue.hold': restricted,
  'queue.release': 'The mail may have been sent already. Hold the queue again instead.',
  'reversals.delete': 'It made an override permanent. Edit the project again instead.',
  'routing.create': created,
  'routing.delete': deleted,
  'routing.request-confirmation': performed,
  'secrets.rewrap': command,
  'suppressions.create': suppressed,
  'suppressions.delete': unsuppressed,
  'suppressions.import': imported,
  'users.create': command,
  'users.edit': 'It changed what a person may do, and signed them out. Edit the user again instead.',
  'users.issue-token': rotated,
  'users.link': command,
  'users.reset': rotated,
  'users.reset-password': rotated,
  'users.reset-second-factor':
    'It removed a second factor, which cannot be restored. The user can set up another one.',
  'users.unlink': command,
}
