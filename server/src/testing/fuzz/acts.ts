import type { Chance } from '../harness/random.ts'
import type { ServedDocument } from './document.ts'
import { weighted } from './draw.ts'
import { createApiKey, deleteApiKey, editApiKey, rotateApiKey } from './model/api-keys.ts'
import { replayEndpoint, testEndpoint } from './model/deliveries.ts'
import { createDomain, deleteDomain, editDomain, rotateDomain, verifyDomain } from './model/domains.ts'
import { createEndpoint, deleteEndpoint, editEndpoint, rotateEndpoint } from './model/endpoints.ts'
import type { Intent } from './model/intent.ts'
import { createIntervention, editIntervention, endIntervention } from './model/interventions.ts'
import { cancelMessage, holdQueue, releaseQueue } from './model/mail.ts'
import { createMember, deleteMember, editMember } from './model/members.ts'
import { createNote, deleteNote, editNote } from './model/notes.ts'
import { createPlan, editPlan } from './model/plans.ts'
import { createProject, editProject, setBilling } from './model/projects.ts'
import { createRoute, deleteRoute, editRoute, requestConfirmation } from './model/routing.ts'
import { editUser } from './model/users.ts'
import type { World } from './model/world.ts'

type Act = (world: World, chance: Chance) => Intent | undefined

/** Every mutation that the model covers, with its relative frequency. */
const acts: Record<string, readonly [weight: number, act: Act]> = {
  'plans.create': [3, createPlan],
  'plans.edit': [8, editPlan],
  'projects.create': [1, createProject],
  'projects.edit': [22, editProject],
  'projects.set-billing': [6, setBilling],
  'users.edit': [5, editUser],
  'members.create': [14, createMember],
  'members.edit': [10, editMember],
  'members.delete': [7, deleteMember],
  'endpoints.create': [9, createEndpoint],
  'endpoints.edit': [11, editEndpoint],
  'endpoints.rotate': [7, rotateEndpoint],
  'endpoints.test': [3, testEndpoint],
  'endpoints.replay': [6, replayEndpoint],
  'endpoints.delete': [6, deleteEndpoint],
  'domains.create': [10, createDomain],
  'domains.edit': [10, editDomain],
  'domains.rotate': [4, rotateDomain],
  'domains.verify': [2, verifyDomain],
  'domains.delete': [4, deleteDomain],
  'routing.create': [14, createRoute],
  'routing.edit': [10, editRoute],
  'routing.delete': [4, deleteRoute],
  'routing.request-confirmation': [2, requestConfirmation],
  'api-keys.create': [7, createApiKey],
  'api-keys.edit': [6, editApiKey],
  'api-keys.rotate': [4, rotateApiKey],
  'api-keys.delete': [4, deleteApiKey],
  'queue.hold': [4, holdQueue],
  'queue.release': [4, releaseQueue],
  'interventions.create': [6, createIntervention],
  'interventions.edit': [4, editIntervention],
  'interventions.end': [5, endIntervention],
  'messages.cancel': [5, cancelMessage],
  'notes.create': [5, createNote],
  'notes.edit': [4, editNote],
  'notes.delete': [2, deleteNote],
}

/**
 * Mutations that the model does not cover, with the reason. Their responses are checked only against the document.
 */
const unmodelled: Record<string, string> = {
  'audit.undo': 'It repeats an edit, and has a randomised test of its own.',
  'bulk.create': 'A worker performs it, and no worker runs during the test.',
  'bulk.stop': 'There are no bulk actions.',
  'bulk.resume': 'There are no bulk actions.',
  'policies.create': 'Names are unique and the number is limited across all sequences.',
  'policies.edit': 'As policies.create.',
  'policies.delete': 'As policies.create.',
  'queue.discard': 'A worker performs it, and no worker runs during the test.',
  'discards.stop': 'There are no discards.',
  'discards.resume': 'There are no discards.',
  'evidence.create': 'A read that is a POST.',
  'reversals.delete': 'The test of temporary overrides has its own model.',
  'suppressions.create': 'A worker performs it, and no worker runs during the test.',
  'suppressions.delete': 'As suppressions.create.',
  'suppressions.import': 'As suppressions.create.',
  'platform-suppressions.create': 'The list belongs to all sequences.',
  'platform-suppressions.delete': 'As platform-suppressions.create.',
  'platform-suppressions.import': 'As platform-suppressions.create.',
  'trace.find': 'A read that is a POST.',
}

export const coveredMutations = [...Object.keys(acts), ...Object.keys(unmodelled)]

/** Skips operations that the document does not contain. */
export function nextIntent(document: ServedDocument, world: World, chance: Chance): Intent | undefined {
  const offered = Object.entries(acts).filter(([id]) => document.has(id))
  return weighted(
    chance,
    offered.map(([, entry]) => entry),
  )(world, chance)
}
