import type { IdentityReport, MtaProvider, Registration } from './mta-provider.ts'

/**
 * The operator's own MTA fleet. It sends whatever it is handed and knows no identities, so there is nothing to
 * call: whether mail may leave under a name is decided by the name's DNS records alone, and we sign it ourselves.
 */
export function createServiceProvider(): MtaProvider {
  return {
    name: 'service',
    place: { account: null, region: null },
    register: async (): Promise<Registration> => ({ dkimTokens: [], dkimZone: null }),
    look: async (): Promise<IdentityReport> => ({
      isRegistered: true,
      isVerified: true,
      dkimTokens: [],
      dkimZone: null,
      detail: null,
    }),
    deregister: async () => {},
    close: () => {},
  }
}
