import { ExternalIssuers, reasonOf } from '../core/control/access/external-issuers.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { type Check, failure, ok, unlessFound } from './check.ts'

/** Checks that the issuers at which people sign in can be reached, and that their metadata is usable. */
export const issuerCheck: Check = {
  name: 'sign-in-issuers',
  async run({ settings: { signInIssuers, publicUrl }, dns }) {
    if (signInIssuers.length === 0) return [ok('No issuer is configured (POSTERN_SIGN_IN_ISSUERS is empty).')]
    const issuers = new ExternalIssuers({
      ...{ issuers: signInIssuers, publicUrl, resolver: dns },
      log: createLogger('silent'),
    })
    try {
      const findings = await Promise.all(
        issuers.all.map((client) =>
          client.check().then(
            () => undefined,
            (error: unknown) =>
              failure(
                `The issuer ${client.settings.issuer} cannot be used: ${reasonOf(error).replace(/\.$/, '')}.`,
                'Check its address in POSTERN_SIGN_IN_ISSUERS, the network and its certificate. An issuer at a private address ' +
                  'needs "private_networks", and one with a certificate of your own authority needs "ca_file".',
              ),
          ),
        ),
      )
      return unlessFound(findings, 'Every issuer at which people sign in responds.')
    } finally {
      await issuers.close()
    }
  },
}
