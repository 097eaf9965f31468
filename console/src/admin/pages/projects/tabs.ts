/** The tabs of a project's page: path and label. */
export const tabs = [
  ['overview', 'Overview'],
  ['sending', 'Sending'],
  ['domains', 'Domains'],
  ['endpoints', 'Endpoints'],
  ['routing', 'Routing'],
  ['members', 'Members'],
  ['api-keys', 'API keys'],
  ['messages', 'Messages'],
  ['audit', 'Audit'],
] as const
