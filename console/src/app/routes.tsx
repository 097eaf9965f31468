import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { Dialogs } from '../act/dialogs.tsx'
import { PageNotFound } from '../components/states.tsx'
import { routerOptions } from '../frame/router-options.tsx'

import { messageListSearch } from '../resources/messages/message-list.tsx'
import {
  activitySearch,
  attemptSearch,
  listSearch,
  rootSearch,
  routingSearch,
  sendingCheckSearch,
  sendSearch,
  suppressionSearch,
} from './search.ts'

import { AppShell } from './shell/app-shell.tsx'
import { ProjectFrame } from './shell/project-frame.tsx'

/** Every page of the app. Each is loaded on its first visit. */
const root = createRootRoute({
  component: () => (
    <Dialogs>
      <AppShell />
    </Dialogs>
  ),
  validateSearch: rootSearch,
  notFoundComponent: PageNotFound,
})

const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/projects/start-page.tsx'), 'StartPage'),
})
const projects = createRoute({
  getParentRoute: () => root,
  path: '/projects',
  component: lazyRouteComponent(() => import('./pages/projects/projects-page.tsx'), 'ProjectsPage'),
})

const newProject = createRoute({
  getParentRoute: () => root,
  path: '/start',
  component: lazyRouteComponent(() => import('./pages/first-run/first-run-page.tsx'), 'NewProjectPage'),
})
const account = createRoute({
  getParentRoute: () => root,
  path: '/account',
  component: lazyRouteComponent(() => import('../account/account-page.tsx'), 'AccountPage'),
})

const project = createRoute({
  getParentRoute: () => root,
  path: '/projects/$projectId',
  component: ProjectFrame,
})
const home = createRoute({
  getParentRoute: () => project,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/home/home-page.tsx'), 'HomePage'),
})
const firstRun = createRoute({
  getParentRoute: () => project,
  path: '/start',
  component: lazyRouteComponent(() => import('./pages/first-run/first-run-page.tsx'), 'FirstRunPage'),
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
const apiKeys = createRoute({
  getParentRoute: () => project,
  path: '/api-keys',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./pages/api-keys/api-keys-page.tsx'), 'ApiKeysPage'),
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

const messages = createRoute({
  getParentRoute: () => project,
  path: '/messages',
  validateSearch: messageListSearch,
  component: lazyRouteComponent(() => import('./pages/messages/messages-page.tsx'), 'MessagesPage'),
})
const message = createRoute({
  getParentRoute: () => project,
  path: '/messages/$id',
  component: lazyRouteComponent(() => import('./pages/messages/message-page.tsx'), 'MessagePage'),
})
const send = createRoute({
  getParentRoute: () => project,
  path: '/send',
  validateSearch: sendSearch,
  component: lazyRouteComponent(() => import('./pages/send/send-page.tsx'), 'SendPage'),
})
const sendingCheck = createRoute({
  getParentRoute: () => project,
  path: '/sending-check',
  validateSearch: sendingCheckSearch,
  component: lazyRouteComponent(
    () => import('./pages/sending-check/sending-check-page.tsx'),
    'SendingCheckPage',
  ),
})
const suppressions = createRoute({
  getParentRoute: () => project,
  path: '/suppressions',
  validateSearch: suppressionSearch,
  component: lazyRouteComponent(
    () => import('./pages/suppressions/suppressions-page.tsx'),
    'SuppressionsPage',
  ),
})
const notices = createRoute({
  getParentRoute: () => project,
  path: '/notices',
  component: lazyRouteComponent(() => import('./pages/notices/notices-page.tsx'), 'NoticesPage'),
})
const activity = createRoute({
  getParentRoute: () => project,
  path: '/activity',
  validateSearch: activitySearch,
  component: lazyRouteComponent(() => import('./pages/activity/activity-page.tsx'), 'ActivityPage'),
})
const settings = createRoute({
  getParentRoute: () => project,
  path: '/settings',
  component: lazyRouteComponent(() => import('./pages/settings/settings-page.tsx'), 'SettingsPage'),
})

export const router = createRouter({
  routeTree: root.addChildren([
    ...[start, projects, newProject, account],
    project.addChildren([
      ...[home, firstRun, notices],
      ...[messages, message, send, sendingCheck, suppressions],
      ...[domains, domain, apiKeys, endpoints, endpoint, routing],
      ...[members, activity, settings],
    ]),
  ]),
  ...routerOptions,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
