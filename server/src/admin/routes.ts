import { PosternError } from '../platform/errors.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { listActivityQuery } from './activity/list-activity.ts'
import { createApiKeyOperation } from './api-keys/create-api-key.ts'
import { deleteApiKeyOperation } from './api-keys/delete-api-key.ts'
import { editApiKeyOperation } from './api-keys/edit-api-key.ts'
import { listApiKeysQuery } from './api-keys/list-api-keys.ts'
import { rotateApiKeyOperation } from './api-keys/rotate-api-key.ts'
import { showApiKey } from './api-keys/show-api-key.ts'
import { exportAuditQuery } from './audit/export-audit.ts'
import { listAuditQuery } from './audit/list-audit.ts'
import { listDenialsQuery } from './audit/list-denials.ts'
import { listLookupsQuery } from './audit/list-lookups.ts'
import { showAudit } from './audit/show-audit.ts'
import { undoEntryOperation } from './audit/undo-entry.ts'
import { verifyAuditQuery } from './audit/verify-audit.ts'
import { type AuthenticateDeps, authenticateRequests } from './authenticate-request.ts'
import { createBulkOperation } from './bulk/create-bulk.ts'
import { listBulkQuery } from './bulk/list-bulk.ts'
import { resumeBulkOperation } from './bulk/resume-bulk.ts'
import { showBulk } from './bulk/show-bulk.ts'
import { stopBulkOperation } from './bulk/stop-bulk.ts'
import { showDeliveryAttemptQuery } from './delivery-attempts/show-delivery-attempt.ts'
import { listDiscardsQuery } from './discards/list-discards.ts'
import { resumeDiscardOperation } from './discards/resume-discard.ts'
import { showDiscard } from './discards/show-discard.ts'
import { stopDiscardOperation } from './discards/stop-discard.ts'
import { createDomainOperation } from './domains/create-domain.ts'
import { deleteDomainOperation } from './domains/delete-domain.ts'
import { editDomainOperation } from './domains/edit-domain.ts'
import { listDomainsQuery } from './domains/list-domains.ts'
import { rotateDomainKeyOperation } from './domains/rotate-domain-key.ts'
import { showDomain } from './domains/show-domain.ts'
import { verifyDomainOperation } from './domains/verify-domain.ts'
import { createEndpointOperation } from './endpoints/create-endpoint.ts'
import { deleteEndpointOperation } from './endpoints/delete-endpoint.ts'
import { editEndpointOperation } from './endpoints/edit-endpoint.ts'
import { listAttemptsQuery } from './endpoints/list-attempts.ts'
import { listEndpointsQuery } from './endpoints/list-endpoints.ts'
import { replayEndpointOperation } from './endpoints/replay-endpoint.ts'
import { rotateEndpointOperation } from './endpoints/rotate-endpoint-secret.ts'
import { showEndpoint } from './endpoints/show-endpoint.ts'
import { testEndpointOperation } from './endpoints/test-endpoint.ts'
import { createEvidenceQuery } from './evidence/create-evidence.ts'
import { downloadEvidenceQuery } from './evidence/download-evidence.ts'
import { listEvidenceQuery } from './evidence/list-evidence.ts'
import { showEvidenceQuery } from './evidence/show-evidence.ts'
import { listFiringsQuery } from './firings/list-firings.ts'
import { createInterventionOperation } from './interventions/create-intervention.ts'
import { editInterventionOperation } from './interventions/edit-intervention.ts'
import { endInterventionOperation } from './interventions/end-intervention.ts'
import { listInterventionsQuery } from './interventions/list-interventions.ts'
import { showIntervention } from './interventions/show-intervention.ts'
import { showMailboxProvidersQuery } from './mailbox-providers/show-mailbox-providers.ts'
import { createMemberOperation } from './members/create-member.ts'
import { deleteMemberOperation } from './members/delete-member.ts'
import { editMemberOperation } from './members/edit-member.ts'
import { listMembersQuery } from './members/list-members.ts'
import { showMember } from './members/show-member.ts'
import { cancelMessageOperation } from './messages/cancel-message.ts'
import { explainMessageQuery } from './messages/explain-message.ts'
import { listMessageEventsQuery } from './messages/list-message-events.ts'
import { listMessagesQuery } from './messages/list-messages.ts'
import { searchMessagesQuery } from './messages/search-messages.ts'
import { showMessageQuery } from './messages/show-message.ts'
import { createNoteOperation } from './notes/create-note.ts'
import { deleteNoteOperation } from './notes/delete-note.ts'
import { editNoteOperation } from './notes/edit-note.ts'
import { listNotesQuery } from './notes/list-notes.ts'
import { showNote } from './notes/show-note.ts'
import { type AdminDeps, isMutation } from './operation.ts'
import { showOverviewQuery } from './overview/show-overview.ts'
import { createPlanOperation } from './plans/create-plan.ts'
import { editPlanOperation } from './plans/edit-plan.ts'
import { listPlansQuery } from './plans/list-plans.ts'
import { showPlan } from './plans/show-plan.ts'
import { createPlatformSuppressionOperation } from './platform-suppressions/create-platform-suppression.ts'
import { deletePlatformSuppressionOperation } from './platform-suppressions/delete-platform-suppression.ts'
import { importPlatformSuppressionsOperation } from './platform-suppressions/import-platform-suppressions.ts'
import { listPlatformSuppressionsQuery } from './platform-suppressions/list-platform-suppressions.ts'
import { showPlatformSuppression } from './platform-suppressions/show-platform-suppression.ts'
import { backtestPolicyQuery } from './policies/backtest-policy.ts'
import { createPolicyOperation } from './policies/create-policy.ts'
import { deletePolicyOperation } from './policies/delete-policy.ts'
import { editPolicyOperation } from './policies/edit-policy.ts'
import { listPoliciesQuery } from './policies/list-policies.ts'
import { showPolicy } from './policies/show-policy.ts'
import { createProjectOperation } from './projects/create-project.ts'
import { editProjectOperation } from './projects/edit-project.ts'
import { listProjectsQuery } from './projects/list-projects.ts'
import { listVolumesQuery } from './projects/list-volumes.ts'
import { setBillingOperation } from './projects/set-billing.ts'
import { showProject } from './projects/show-project.ts'
import { discardQueueOperation } from './queue/discard-queue.ts'
import { holdQueueOperation } from './queue/hold-queue.ts'
import { releaseQueueOperation } from './queue/release-queue.ts'
import { showQueueQuery } from './queue/show-queue.ts'
import { registerOperations } from './register.ts'
import { showReputationQuery } from './reputation/show-reputation.ts'
import { deleteReversalOperation } from './reversals/delete-reversal.ts'
import { listReversalsQuery } from './reversals/list-reversals.ts'
import { showReversal } from './reversals/show-reversal.ts'
import { createRouteOperation } from './routing/create-route.ts'
import { deleteRouteOperation } from './routing/delete-route.ts'
import { editRouteOperation } from './routing/edit-route.ts'
import { listRoutesQuery } from './routing/list-routes.ts'
import { matchRouteQuery } from './routing/match-route.ts'
import { requestConfirmationOperation } from './routing/request-confirmation.ts'
import { showRoute } from './routing/show-route.ts'
import { findAnythingQuery } from './search/find-anything.ts'
import { explainSendingQuery } from './sending/explain-sending.ts'
import { createSuppressionOperation } from './suppressions/create-suppression.ts'
import { deleteSuppressionOperation } from './suppressions/delete-suppression.ts'
import { importSuppressionsOperation } from './suppressions/import-suppressions.ts'
import { listSuppressionsQuery } from './suppressions/list-suppressions.ts'
import { findTraceQuery } from './trace/find-trace.ts'
import { showUsageQuery } from './usage/show-usage.ts'
import { editUserOperation } from './users/edit-user.ts'
import { listUsersQuery } from './users/list-users.ts'
import { showUser } from './users/show-user.ts'

/** The operations on resources, by noun. */
const resourceOperations = [
  showOverviewQuery,
  findAnythingQuery,
  findTraceQuery,
  searchMessagesQuery,

  listProjectsQuery,
  listVolumesQuery,
  createProjectOperation,
  showProject,
  explainSendingQuery,
  editProjectOperation,
  setBillingOperation,

  listMembersQuery,
  createMemberOperation,
  showMember,
  editMemberOperation,
  deleteMemberOperation,

  listActivityQuery,

  listDomainsQuery,
  createDomainOperation,
  showDomain,
  editDomainOperation,
  verifyDomainOperation,
  rotateDomainKeyOperation,
  deleteDomainOperation,

  listEndpointsQuery,
  createEndpointOperation,
  showEndpoint,
  editEndpointOperation,
  rotateEndpointOperation,
  testEndpointOperation,
  listAttemptsQuery,
  showDeliveryAttemptQuery,
  replayEndpointOperation,
  deleteEndpointOperation,

  listRoutesQuery,
  createRouteOperation,
  showRoute,
  editRouteOperation,
  deleteRouteOperation,
  requestConfirmationOperation,
  matchRouteQuery,

  listApiKeysQuery,
  createApiKeyOperation,
  showApiKey,
  editApiKeyOperation,
  rotateApiKeyOperation,
  deleteApiKeyOperation,

  listMessagesQuery,
  showMessageQuery,
  explainMessageQuery,
  listMessageEventsQuery,
  cancelMessageOperation,
  listSuppressionsQuery,
  createSuppressionOperation,
  importSuppressionsOperation,
  deleteSuppressionOperation,
  showUsageQuery,
  showMailboxProvidersQuery,
  showReputationQuery,
  showQueueQuery,
  holdQueueOperation,
  releaseQueueOperation,
  discardQueueOperation,
  listDiscardsQuery,
  showDiscard,
  stopDiscardOperation,
  resumeDiscardOperation,

  listInterventionsQuery,
  createInterventionOperation,
  showIntervention,
  editInterventionOperation,
  endInterventionOperation,
  listReversalsQuery,
  showReversal,
  deleteReversalOperation,

  listNotesQuery,
  createNoteOperation,
  showNote,
  editNoteOperation,
  deleteNoteOperation,

  listEvidenceQuery,
  createEvidenceQuery,
  showEvidenceQuery,
  downloadEvidenceQuery,

  listPlansQuery,
  createPlanOperation,
  showPlan,
  editPlanOperation,

  listPoliciesQuery,
  createPolicyOperation,
  showPolicy,
  editPolicyOperation,
  deletePolicyOperation,
  backtestPolicyQuery,
  listFiringsQuery,

  listPlatformSuppressionsQuery,
  createPlatformSuppressionOperation,
  importPlatformSuppressionsOperation,
  showPlatformSuppression,
  deletePlatformSuppressionOperation,

  listBulkQuery,
  createBulkOperation,
  showBulk,
  stopBulkOperation,
  resumeBulkOperation,

  listUsersQuery,
  showUser,
  editUserOperation,

  undoEntryOperation,
]

/** Every administrative operation: the plane's table of contents. */
export const adminOperations = [
  ...resourceOperations,

  listAuditQuery(resourceOperations.filter(isMutation).map(({ id }) => id)),
  exportAuditQuery,
  verifyAuditQuery,
  showAudit,
  listDenialsQuery,
  listLookupsQuery,
]

export function adminRoutes(app: HttpServer, deps: AdminDeps & AuthenticateDeps): void {
  app.register(
    (plane, _options, done) => {
      authenticateRequests(plane, deps)
      registerOperations(plane, adminOperations, deps)
      for (const path of ['/admin', '/admin/', '/admin/*']) {
        // Responds right after authentication, without reading the body.
        plane.all(path, { schema: { hide: true } as object, onRequest: refuseUnknown }, refuseUnknown)
      }
      done()
    },
    { prefix: '/v1' },
  )
}

async function refuseUnknown(): Promise<never> {
  throw new PosternError('not_found', 'There is no administrative operation at this path.')
}
