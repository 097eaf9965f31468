import { type Check, failure, unlessFound, warning } from './check.ts'

/** Checks that at least one provider for sending mail is configured. */
export const sendingCheck: Check = {
  name: 'sending',
  async run({ settings: { mtaHosts, sesRegion, sesConfigurationSet, systemMailFrom } }) {
    const isSesPartial = sesRegion !== undefined && sesConfigurationSet === undefined
    const hasProvider = mtaHosts.length > 0 || sesConfigurationSet !== undefined
    return unlessFound(
      [
        hasProvider
          ? undefined
          : failure(
              'No mail can be sent: neither POSTERN_MTA_HOSTS nor POSTERN_SES_CONFIGURATION_SET is set.',
              'Set POSTERN_MTA_HOSTS to your MTA, for example smtp://127.0.0.1:25, or set up Amazon SES.',
            ),
        isSesPartial
          ? warning(
              'Amazon SES is only partly configured: domains are registered with it, but no mail is sent through it.',
              'Set POSTERN_SES_CONFIGURATION_SET and POSTERN_SES_TOPIC_ARNS, or unset POSTERN_SES_REGION and POSTERN_SES_ACCOUNT_ID.',
            )
          : undefined,
        systemMailFrom === undefined || mtaHosts.length === 0
          ? warning(
              'Postern cannot send system mail: no invitations, no password reset links, no notices to owners, and no confirmations of forwards.',
              'Set POSTERN_SYSTEM_MAIL_FROM to one of your own addresses, and set POSTERN_MTA_HOSTS.',
            )
          : undefined,
      ],
      'A provider and the sender of system mail are configured.',
    )
  },
}
