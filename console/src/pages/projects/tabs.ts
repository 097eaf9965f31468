/** The parts of a project's page: where each is, and what it is called. */
export const tabs = [
  ['overview', 'Overview'],
  ['domains', 'Domains'],
  ['endpoints', 'Endpoints'],
  ['routing', 'Routing'],
  ['members', 'Members'],
  ['api-keys', 'API keys'],
  ['messages', 'Messages'],
  ['audit', 'Audit'],
] as const
