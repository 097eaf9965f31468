import type { SectionGroup } from '../../frame/navigation.tsx'

/** The navigation: the pages of the project, or the list of projects. */
export function sectionsOf(projectId: string | undefined): SectionGroup[] {
  if (projectId === undefined) {
    return [{ sections: [{ to: '/projects', label: 'Projects', icon: 'project', key: 'p' }] }]
  }
  const at = `/projects/${projectId}`
  return [
    { sections: [{ to: at, label: 'Home', icon: 'overview', key: 'h', isExact: true }] },
    {
      label: 'Mail',
      sections: [
        { to: `${at}/messages`, label: 'Messages', icon: 'mail', key: 'm' },
        { to: `${at}/send`, label: 'Send a test', icon: 'send', key: 't' },
        { to: `${at}/sending-check`, label: 'Sending check', icon: 'check', key: 'c' },
        { to: `${at}/suppressions`, label: 'Suppressions', icon: 'suppression', key: 'p' },
      ],
    },
    {
      label: 'Setup',
      sections: [
        { to: `${at}/start`, label: 'Get started', icon: 'start', key: 's' },
        { to: `${at}/domains`, label: 'Domains', icon: 'domain', key: 'd' },
        { to: `${at}/api-keys`, label: 'API keys', icon: 'key', key: 'k' },
        { to: `${at}/endpoints`, label: 'Endpoints', icon: 'endpoint', key: 'e' },
        { to: `${at}/routing`, label: 'Routing', icon: 'route', key: 'r' },
      ],
    },
    {
      label: 'Project',
      sections: [
        { to: `${at}/members`, label: 'Members', icon: 'user', key: 'u' },
        { to: `${at}/activity`, label: 'Activity', icon: 'activity', key: 'a' },
        { to: `${at}/settings`, label: 'Settings', icon: 'settings', key: 'o' },
      ],
    },
  ]
}
