import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { Dialogs } from '../act/dialogs.tsx'
import { PageNotFound } from '../components/states.tsx'
import { routerOptions } from '../frame/router-options.tsx'
import {
  allMessageSearch,
  attemptSearch,
  auditSearch,
  listSearch,
  messageSearch,
  planSearch,
  projectSearch,
  routingSearch,
  sendingSearch,
  suppressionSearch,
  userSearch,
} from './search.ts'
import { AdministratorsShell } from './shell/administrators-shell.tsx'
import { ByRights } from './shell/by-rights.tsx'

/** Every page of the console. Each is loaded on its first visit. */
const root = createRootRoute({
  component: () => (
    <ByRights>
      <Dialogs>
        <AdministratorsShell />
      </Dialogs>
    </ByRights>
  ),
  notFoundComponent: PageNotFound,
})

const account = createRoute({
  getParentRoute: () => root,
  path: '/account',
  component: lazyRouteComponent(() => import('../account/account-page.tsx'), 'AccountPage'),
})

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/overview/overview-page.tsx'), 'OverviewPage'),
})

const projects = createRoute({
  getParentRoute: () => root,
  path: '/projects',
  validateSearch: projectSearch,
  component: lazyRouteComponent(() => import('./pages/projects/projects-page.tsx'), 'ProjectsPage'),
})
const project = createRoute({
  getParentRoute: () => root,
  path: '/projects/$projectId',
  component: lazyRouteComponent(() => import('./pages/projects/project-page.tsx'), 'ProjectPage'),
})
const overview = createRoute({
  getParentRoute: () => project,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/projects/overview.tsx'), 'Overview'),
})
const sending = createRoute({
  getParentRoute: () => project,
  path: '/sending',
  validateSearch: sendingSearch,
  component: lazyRouteComponent(() => import('./pages/sending/sending-page.tsx'), 'SendingPage'),
})
const domains = createRoute({
  getParentRoute: () => project,
  path: '/domains',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/domains/domains-page.tsx'), 'DomainsPage'),
})
const domain = createRoute({
  getParentRoute: () => project,
  path: '/domains/$id',
  component: lazyRouteComponent(() => import('./pages/domains/domain-page.tsx'), 'DomainPage'),
})
const endpoints = createRoute({
  getParentRoute: () => project,
  path: '/endpoints',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/endpoints/endpoints-page.tsx'), 'EndpointsPage'),
})
const endpoint = createRoute({
  getParentRoute: () => project,
  path: '/endpoints/$id',
  validateSearch: attemptSearch,
  component: lazyRouteComponent(() => import('./pages/endpoints/endpoint-page.tsx'), 'EndpointPage'),
})
const routing = createRoute({
  getParentRoute: () => project,
  path: '/routing',
  validateSearch: routingSearch,
  component: lazyRouteComponent(() => import('./pages/routing/routing-page.tsx'), 'RoutingPage'),
})
const members = createRoute({
  getParentRoute: () => project,
  path: '/members',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/members/members-page.tsx'), 'MembersPage'),
})
const apiKeys = createRoute({
  getParentRoute: () => project,
  path: '/api-keys',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/api-keys/api-keys-page.tsx'), 'ApiKeysPage'),
})
const messages = createRoute({
  getParentRoute: () => project,
  path: '/messages',
  validateSearch: messageSearch,
  component: lazyRouteComponent(() => import('./pages/messages/messages-page.tsx'), 'MessagesPage'),
})
const message = createRoute({
  getParentRoute: () => project,
  path: '/messages/$id',
  component: lazyRouteComponent(() => import('./pages/messages/message-page.tsx'), 'MessagePage'),
})
const projectAudit = createRoute({
  getParentRoute: () => project,
  path: '/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./pages/audit/project-audit.tsx'), 'ProjectAudit'),
})

const allMessages = createRoute({
  getParentRoute: () => root,
  path: '/messages',
  validateSearch: allMessageSearch,
  component: lazyRouteComponent(() => import('./pages/messages/all-messages-page.tsx'), 'AllMessagesPage'),
})
const trace = createRoute({
  getParentRoute: () => root,
  path: '/trace',
  component: lazyRouteComponent(() => import('./pages/trace/trace-page.tsx'), 'TracePage'),
})
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./pages/audit/audit-page.tsx'), 'AuditPage'),
})
const auditEntry = createRoute({
  getParentRoute: () => root,
  path: '/audit/$id',
  component: lazyRouteComponent(() => import('./pages/audit/audit-entry-page.tsx'), 'AuditEntryPage'),
})
const plans = createRoute({
  getParentRoute: () => root,
  path: '/plans',
  validateSearch: planSearch,
  component: lazyRouteComponent(() => import('./pages/plans/plans-page.tsx'), 'PlansPage'),
})
const policies = createRoute({
  getParentRoute: () => root,
  path: '/policies',
  component: lazyRouteComponent(() => import('./pages/policies/policies-page.tsx'), 'PoliciesPage'),
})
const newPolicy = createRoute({
  getParentRoute: () => root,
  path: '/policies/new',
  component: lazyRouteComponent(() => import('./pages/policies/policy-form-page.tsx'), 'NewPolicyPage'),
})
const policy = createRoute({
  getParentRoute: () => root,
  path: '/policies/$id',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/policies/policy-page.tsx'), 'PolicyPage'),
})
const editPolicy = createRoute({
  getParentRoute: () => root,
  path: '/policies/$id/edit',
  component: lazyRouteComponent(() => import('./pages/policies/policy-form-page.tsx'), 'EditPolicyPage'),
})
const suppressions = createRoute({
  getParentRoute: () => root,
  path: '/suppressions',
  validateSearch: suppressionSearch,
  component: lazyRouteComponent(
    () => import('./pages/suppressions/suppressions-page.tsx'),
    'SuppressionsPage',
  ),
})
const bulkList = createRoute({
  getParentRoute: () => root,
  path: '/bulk',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/bulk/bulk-list-page.tsx'), 'BulkListPage'),
})
const bulk = createRoute({
  getParentRoute: () => root,
  path: '/bulk/$id',
  component: lazyRouteComponent(() => import('./pages/bulk/bulk-page.tsx'), 'BulkPage'),
})
const users = createRoute({
  getParentRoute: () => root,
  path: '/users',
  validateSearch: userSearch,
  component: lazyRouteComponent(() => import('./pages/users/users-page.tsx'), 'UsersPage'),
})

const projectPages = [
  overview,
  sending,
  domains,
  domain,
  endpoints,
  endpoint,
  routing,
  members,
  apiKeys,
  messages,
  message,
  projectAudit,
]

export const router = createRouter({
  routeTree: root.addChildren([
    account,
    home,
    projects,
    project.addChildren(projectPages),
    allMessages,
    trace,
    audit,
    auditEntry,
    plans,
    policies,
    newPolicy,
    policy,
    editPolicy,
    suppressions,
    bulkList,
    bulk,
    users,
  ]),
  ...routerOptions,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
  interface HistoryState {
    /** The text to trace. Not in the URL: it can contain signed references, which must not appear in logs. */
    traceText?: string
  }
}
