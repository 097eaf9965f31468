import type { HttpServer } from '../platform/http/server.ts'
import { listActivityQuery } from './activity/list-activity.ts'
import { createApiKeyOperation } from './api-keys/create-api-key.ts'
import { deleteApiKeyOperation } from './api-keys/delete-api-key.ts'
import { editApiKeyOperation } from './api-keys/edit-api-key.ts'
import { listApiKeysQuery } from './api-keys/list-api-keys.ts'
import { rotateApiKeyOperation } from './api-keys/rotate-api-key.ts'
import { showApiKey } from './api-keys/show-api-key.ts'
import { type AuthenticateDeps, authenticateRequests } from './authenticate-request.ts'
import { showDeliveryAttemptQuery } from './delivery-attempts/show-delivery-attempt.ts'
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
import { acceptInvitationOperation } from './invitations/accept-invitation.ts'
import { listInvitationsQuery } from './invitations/list-invitations.ts'
import { type LargeBodyDeps, shareLargeBodies } from './large-bodies.ts'
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
import { sendBatchOperation } from './messages/send-batch.ts'
import { sendMessageOperation } from './messages/send-message.ts'
import { showMessageQuery } from './messages/show-message.ts'
import { appealNoticeOperation } from './notices/appeal-notice.ts'
import { listNoticesQuery } from './notices/list-notices.ts'
import { showNotice } from './notices/show-notice.ts'
import type { CustomerDeps, CustomerOperation } from './operation.ts'
import { createProjectOperation } from './projects/create-project.ts'
import { deleteProjectOperation } from './projects/delete-project.ts'
import { editProjectOperation } from './projects/edit-project.ts'
import { listProjectsQuery } from './projects/list-projects.ts'
import { showProject } from './projects/show-project.ts'
import { registerOperations } from './register.ts'
import { createRouteOperation } from './routing/create-route.ts'
import { deleteRouteOperation } from './routing/delete-route.ts'
import { editRouteOperation } from './routing/edit-route.ts'
import { listRoutesQuery } from './routing/list-routes.ts'
import { matchRouteQuery } from './routing/match-route.ts'
import { requestConfirmationOperation } from './routing/request-confirmation.ts'
import { showRoute } from './routing/show-route.ts'
import { explainSendingQuery } from './sending/explain-sending.ts'
import { createSuppressionOperation } from './suppressions/create-suppression.ts'
import { deleteSuppressionOperation } from './suppressions/delete-suppression.ts'
import { exportSuppressionsQuery } from './suppressions/export-suppressions.ts'
import { importSuppressionsOperation } from './suppressions/import-suppressions.ts'
import { listSuppressionsQuery } from './suppressions/list-suppressions.ts'
import { showSuppressionQuery } from './suppressions/show-suppression.ts'
import { showUsageQuery } from './usage/show-usage.ts'

/** Every customer operation, by noun: the plane's table of contents. */
export const customerOperations: readonly CustomerOperation[] = [
  listProjectsQuery,
  createProjectOperation,
  showProject,
  editProjectOperation,
  deleteProjectOperation,

  listMembersQuery,
  createMemberOperation,
  showMember,
  editMemberOperation,
  deleteMemberOperation,

  listDomainsQuery,
  createDomainOperation,
  showDomain,
  editDomainOperation,
  verifyDomainOperation,
  rotateDomainKeyOperation,
  deleteDomainOperation,

  sendMessageOperation,
  sendBatchOperation,
  listMessagesQuery,
  showMessageQuery,
  explainMessageQuery,
  listMessageEventsQuery,
  cancelMessageOperation,

  listSuppressionsQuery,
  createSuppressionOperation,
  importSuppressionsOperation,
  exportSuppressionsQuery,
  showSuppressionQuery,
  deleteSuppressionOperation,

  showUsageQuery,
  showMailboxProvidersQuery,
  explainSendingQuery,

  listNoticesQuery,
  showNotice,
  appealNoticeOperation,

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

  listActivityQuery,

  listInvitationsQuery,
  acceptInvitationOperation,
]

export function customerRoutes(app: HttpServer, deps: CustomerDeps & AuthenticateDeps & LargeBodyDeps): void {
  app.register(
    (plane, _options, done) => {
      authenticateRequests(plane, deps)
      shareLargeBodies(plane, deps)
      registerOperations(plane, customerOperations, deps)
      done()
    },
    { prefix: '/v1' },
  )
}
